import http.client
import json
import os
import shutil
import socket
import threading
from contextlib import suppress

import pytest

from attnscope.errors import UsageError
from attnscope.report.page import as_data, policy, request_of
from attnscope.report.payload import payload
from attnscope.report.serve import Report, Server, serve
from cases import for_each


@pytest.fixture
def server(workspace):
    made = serve(request_of(workspace), port=0)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_page_and_its_data_are_served_on_loopback(server, workspace):
    assert server.server_address[0] == "127.0.0.1"
    answer, page = ask(server, "/")
    assert answer.status == 200
    assert b"data-live" in page
    answer, data = ask(server, "/data.json")
    assert json.loads(data) == json.loads(as_data(payload(request_of(workspace))))


def test_every_answer_carries_the_policy(server):
    answer, _ = ask(server, "/")
    assert answer.headers["Content-Security-Policy"].startswith(policy(live=True))
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"


@for_each(
    "path",
    [
        "/snell/fig3/result.json",
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/units",
        "/data.json/../result.json",
        "/\\..\\..\\etc\\passwd",
    ],
)
def test_no_file_is_served_by_its_name(server, path):
    answer, body = ask(server, path)
    assert (answer.status, body) == (404, b"There is nothing here.\n")


@for_each(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil",
        "",
        "10.0.0.1",
        "[::1].evil.com",
        "[localhost]evil.com",
        "[localhost]",
        "127.0.0.1:80@evil.com",
        "localhost:80:80",
        "localhost:",
        "localhost/",
        "::1",
        "[::1",
        "localhost evil.com",
        "127.0.0.1:123456",
    ],
)
def test_another_host_is_refused(server, host):
    answer, _ = ask(server, "/data.json", Host=host)
    assert answer.status == 403


@for_each("host", ["localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_answered(server, host):
    assert ask(server, "/nothing", Host=host)[0].status == 404


def test_an_opened_interface_answers_to_numbers_and_its_own_name_alone(workspace):
    with Server(Report(request_of(workspace)), "0.0.0.0", 0) as opened:
        assert opened.answers("192.168.1.5:8000")
        assert opened.answers("localhost")
        assert not opened.answers("evil.example")
        assert opened.address.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("host", ["", " "])
def test_empty_host_is_not_every_interface(workspace, host):
    with pytest.raises(UsageError, match="--host is empty"):
        serve(request_of(workspace), host=host, port=0)


def test_two_hundred_connections_at_once_are_all_answered(server):
    barrier = threading.Barrier(200)
    statuses = []

    def visit():
        barrier.wait()
        statuses.append(ask(server, "/nothing")[0].status)

    threads = [threading.Thread(target=visit) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [404] * 200


def test_connections_that_never_ask_are_ended_and_others_answered(server):
    silent = [socket.create_connection(server.server_address) for _ in range(80)]
    names = {connection.getsockname() for connection in silent}
    statuses = []
    visitor = threading.Thread(target=lambda: statuses.append(ask(server, "/nothing")[0].status))
    visitor.start()
    while visitor.is_alive():
        for connection in list(server._open):
            with suppress(OSError):  # It is closed already.
                if connection.getpeername() in names:
                    server._open[connection] = float("-inf")
        visitor.join(0.02)
    assert statuses == [404]
    for connection in silent:
        connection.close()


@pytest.mark.parametrize(
    "name",
    ["snell/fig9/result.json", "snell/fig3/figures/x.svg", "units/other/config.json"],
)
@pytest.mark.parametrize("kind", ["fifo", "damaged", "folder", "huge"])
def test_what_is_not_a_sound_file_is_left_out_and_the_rest_served(server, workspace, name, kind):
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with open(path, "wb") as stream:
            stream.truncate(2**40)
    else:
        path.write_bytes(b'{"schema": 1, "recipe": ["\xff')
    (path.parent / "environment.json").write_text("{}")
    answer, body = ask(server, "/data.json")
    assert answer.status == 200
    assert json.loads(body)["runs"]


def test_writing_is_refused(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, "/data.json", method)[0].status == 501


def test_a_head_has_no_body(server):
    answer, body = ask(server, "/", "HEAD")
    assert answer.status == 200
    assert int(answer.headers["Content-Length"]) > 1000
    assert body == b""


def test_data_is_sent_again_only_when_a_file_has_changed(server, workspace):
    answer, _ = ask(server, "/data.json")
    state = answer.headers["ETag"]
    answer, body = ask(server, "/data.json", If_None_Match=state)
    assert (answer.status, body) == (304, b"")
    unit = next((workspace / "units").glob("grammar-translation*"))
    (unit / "done.json").unlink()
    answer, body = ask(server, "/data.json", If_None_Match=state)
    assert answer.status == 200
    assert answer.headers["ETag"] != state
    scenes = json.loads(body)["scenes"]
    assert [
        u["stopped"] for s in scenes if s["title"] == "grammar-translation" for u in s["units"]
    ] == [True]


def test_a_folder_that_vanished_is_one_sentence(server, workspace):
    shutil.rmtree(workspace)
    answer, body = ask(server, "/")
    assert answer.status == 500
    assert body.startswith(b"There is no folder")


def test_a_port_in_use_is_one_sentence(workspace):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"Cannot serve on 127.0.0.1:{port}.*another port"):
            serve(request_of(workspace), port=port)
