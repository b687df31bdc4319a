// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What `--replay` compares: bodies of requests, and with `--diff` responses.
@Suite(.timeLimit(.minutes(2))) struct ReplayTests {
    @Test(
        "the first difference of two bodies is shown with its place",
        arguments: [
            (#"{"a":1,"b":[1,2]}"#, #"{ "b": [1.0, 2], "a": 1 }"#, nil),
            (#"{"a":1,"b":[1,2]}"#, #"{"a":1,"b":[1,3]}"#, "$.b[1]: recorded 2, now 3"),
            (#"{"a":1}"#, #"{"a":"1"}"#, "$.a: recorded 1, now \"1\""), (#"{"a":1}"#, "{}", "$.a: recorded, now missing"),
            ("{}", #"{"a":1}"#, "$.a: not recorded"), ("[1]", "[1,2]", "$: recorded 1 elements, now 2"),
            (#"{"a":{}}"#, #"{"a":[]}"#, "$.a: recorded an object, now an array"), (#""\u0061""#, #""a""#, nil),
            // Names count by their bytes, and of several equal ones the last.
            ("{\"\u{E9}\":1}", "{\"e\u{301}\":1}", "$.\u{E9}: recorded, now missing"), (#"{"a":1,"a":2}"#, #"{"a":2}"#, nil),
            ("a\nb\nc", "a\nx\nc", "line 2: recorded \"b\", now \"x\""), ("a\nb", "a", "line 2: recorded \"b\", now no such line"),
            ("{}", "no JSON", "line 1: recorded \"{}\", now \"no JSON\""), ("a", "", "length: recorded 1, now 0"),
            ("a\0b", "a\0c", "byte 3: recorded 0x62, now 0x63"), ("a\0", "a\0c", "length: recorded 2, now 3"),
        ] as [(String, String, String?)])
    func differences(_ recorded: String, _ present: String, _ difference: String?) {
        func body(_ text: String) -> BodyDifference.Body { BodyDifference.Body(bytes: Data(text.utf8), type: "text/plain") }
        #expect(BodyDifference.text(recorded: body(recorded), present: body(present)) == difference)
    }

    @Test("types count without their parameters, and forms without their boundaries") func types() {
        func text(_ first: (String, String?), _ second: (String, String?)) -> String? {
            BodyDifference.text(
                recorded: BodyDifference.Body(bytes: Data(first.0.utf8), type: first.1),
                present: BodyDifference.Body(bytes: Data(second.0.utf8), type: second.1))
        }
        #expect(text(("a", "Text/plain; charset=utf-8"), ("a", "text/plain")) == nil)
        #expect(text(("a", "text/plain"), ("b", nil)) == "type: recorded text/plain, now none; line 1: recorded \"a\", now \"b\"")
        let type = "multipart/form-data; boundary="
        #expect(text(("--x\r\na\r\n--x--", type + "x"), ("--yy\r\na\r\n--yy--", type + "\"yy\"")) == nil)
        #expect(text(("--x\r\na\r\n--x--", type + "x"), ("--y\r\nb\r\n--y--", type + "y")) == "line 2: recorded \"a\\r\", now \"b\\r\"")
    }

    /// A server that returns what it has received, and a folder with what was recorded of it.
    private struct Recorded {
        let folder: TemporaryDirectory
        let url: String

        init(_ words: [[String]], input: String? = nil) async throws {
            let server = try LoopbackServer { request, _ in .ok(request.body) }
            folder = try TemporaryDirectory()
            url = server.url("/x")
            for words in words {
                let run = try ToolRun(["POST", url, "--record", tape] + words, hasInput: input != nil)
                if let input { run.feed(Data(input.utf8)) }
                let result = await run.result()
                #expect(result.status == 0, "\(result.error)")
            }
            // From now on there is no network.
            server.stop()
        }

        var tape: String { folder.file("tape").path }
    }

    @Test("a request is answered if its body was recorded, JSON by its value") func requests() async throws {
        let recorded = try await Recorded([["--raw", #"{"a":1,"b":[1,2]}"#], ["a:=2"]])
        let words = ["POST", recorded.url, "--replay", recorded.tape]
        let same = try await ToolRun(words + ["b:=[1,2]", "a:=1"]).result()
        #expect(same.status == 0 && same.text == #"{"a":1,"b":[1,2]}"#, "\(same.error)")
        #expect(try await ToolRun(words + ["a:=2"]).result().text == #"{"a":2}"#)
        let other = try await ToolRun(words + ["b:=[1,3]", "a:=1"]).result()
        #expect(other.status == 1 && other.text == "")
        #expect(other.error == "curlew: the request's body is not the one that was recorded: $.b[1]: recorded 2, now 3\n")
        let type = try await ToolRun(words + ["--raw", "x"]).result()
        #expect(type.error.contains(": type: recorded application/json, now text/plain; line 1: "))
        let none = try await ToolRun(["POST", "\(recorded.url)/y", "--replay", recorded.tape]).result()
        #expect(none.status == 1)
    }

    @Test("forms of parts and standard input are compared too, without their secrets") func otherBodies() async throws {
        let form = try await Recorded([["--multipart", "a=b", "c=d", "password=secret"]])
        let words = ["POST", form.url, "--replay", form.tape, "--multipart", "a=b"]
        #expect(try await ToolRun(words + ["c=d", "password=secret"]).result().status == 0)
        let other = try await ToolRun(words + ["c=e", "password=secret"]).result()
        #expect(other.status == 1 && other.error.contains("recorded \"d\\r\", now \"e\\r\"") && !other.error.contains("secret"))
        let piped = try await Recorded([["--body", "-", "Content-Type:text/plain"]], input: "a\nb")
        for (input, status) in [("a\nb", 0), ("a\nc", 1)] as [(String, Int32)] {
            let run = try ToolRun(
                ["POST", piped.url, "--replay", piped.tape, "--body", "-", "Content-Type:text/plain"], hasInput: true)
            run.feed(Data(input.utf8))
            let result = await run.result()
            #expect(result.status == status && (status == 0 ? result.text == "a\nb" : result.error.contains("line 2: ")), "\(result.error)")
        }
    }

    @Test("--diff sends the request, and compares status, type and body of the response") func responses() async throws {
        let response = Lock((status: 200, type: "application/json", body: #"{"id":7,"token":"first"}"#))
        let server = try LoopbackServer { _, _ in
            let now = response.withLock { $0 }
            return ServerResponse(status: now.status, headers: [ServerField("Content-Type", now.type)], body: .data(Data(now.body.utf8)))
        }
        let folder = try TemporaryDirectory()
        let tape = folder.file("tape").path
        #expect(try await ToolRun.run(server.url("/x"), "--record", tape).status == 0)
        func compared(_ words: String...) async throws -> ToolRun.Result {
            try await ToolRun([server.url("/x"), "--replay", tape, "--diff"] + words).result()
        }
        // What the recording hides is not compared.
        response.withLock { $0.body = #"{ "token": "second", "id": 7 }"# }
        let same = try await compared()
        #expect(same.status == 0 && same.text == "" && same.error == "", "\(same.error)")
        #expect(server.requestCount == 2)
        response.withLock { $0.body = #"{"id":8,"token":"third"}"# }
        let body = try await compared("-b")
        #expect(body.status == 1 && body.text == #"{"id":8,"token":"third"}"#)
        #expect(body.error == "curlew: the response differs: $.id: recorded 7, now 8\n")
        response.withLock { $0 = (404, "text/plain", "gone") }
        let all = try await compared()
        #expect(all.status == 1 && all.error.hasPrefix("curlew: the response differs: status: recorded 200, now 404; type: "))
        // A recorded failure is what is expected.
        let missing = folder.file("missing").path
        #expect(try await ToolRun.run(server.url("/x"), "--record", missing).status == 4)
        #expect(try await ToolRun.run(server.url("/x"), "--replay", missing, "--diff").status == 0)
        server.stop()
        #expect(try await compared().status == 6)
        #expect(try await ToolRun.run(server.url("/x"), "--diff").status == 2)
    }
}
