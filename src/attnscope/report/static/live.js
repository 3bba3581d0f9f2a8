// A served page asks its server now and then whether there is something new.

const ASK_EVERY = 2000;

export function follow(onData) {
  const status = document.getElementById("live");
  status.hidden = false;
  status.textContent = "following";
  let state = null;
  async function ask() {
    try {
      const headers = state ? { "If-None-Match": state } : {};
      const answer = await fetch("data.json", { headers, cache: "no-store" });
      if (answer.status === 200) {
        const first = state === null;
        state = answer.headers.get("ETag");
        const data = await answer.json();
        if (!first) onData(data);
      }
      status.textContent = "following";
      status.className = "on";
    } catch {
      status.textContent = "the server does not answer";
      status.className = "off";
    }
    setTimeout(ask, ASK_EVERY);
  }
  ask();
}
