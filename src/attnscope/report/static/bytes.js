// Compressed bytes inside the page: base64 of gzip.

export async function unpacked(text) {
  const zipped = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A drawing as an address for an image and a download; scripts inside an image never run.
export async function drawing(packed) {
  const bytes = await unpacked(packed);
  return URL.createObjectURL(new Blob([bytes], { type: "image/svg+xml" }));
}
