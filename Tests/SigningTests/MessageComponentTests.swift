// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import Testing

/// What components of messages are signed as: the examples of RFC 9421, section 2, and what can't be covered.
// A3.2
@Suite struct MessageComponentTests {
    private static let fields: HTTPHeaders = [
        "Host": "www.example.com", "X-OWS-Header": "   Leading and trailing whitespace.   ",
        "X-Obs-Fold-Header": "Obsolete\r\n    line folding.", "Cache-Control": "max-age=60", "Cache-Control": "   must-revalidate",
        "Example-Dict": " a=1,    b=2;x=1;y=2,   c=(a   b   c), d", "X-Empty-Header": "", "Example-Header": "value, with, lots",
        "Example-Header": "of, commas", "X-List": "a, a", "X-Text": "é", "X-Break": "a\nb",
    ]

    /// The line of a component in the text that is signed.
    private static func line(_ component: MessageComponent, _ message: SignableMessage) throws -> String {
        let lines = try message.signatureBase(SignatureInput([component])).split(separator: "\n")
        #expect(lines.count == 2)
        return String(lines[0])
    }

    @Test(
        "fields",
        arguments: [
            ("host", "\"host\": www.example.com"), ("x-ows-header", "\"x-ows-header\": Leading and trailing whitespace."),
            ("x-obs-fold-header", "\"x-obs-fold-header\": Obsolete line folding."),
            ("Cache-Control", "\"cache-control\": max-age=60, must-revalidate"),
            ("example-dict", "\"example-dict\": a=1,    b=2;x=1;y=2,   c=(a   b   c), d"), ("x-empty-header", "\"x-empty-header\": "),
        ] as [(String, String)])
    func plainFields(name: String, expected: String) throws {
        #expect(try Self.line(.field(name), .response(200, headers: Self.fields)) == expected)
    }

    @Test("fields with parameters") func parameters() throws {
        func line(_ component: MessageComponent) throws -> String { try Self.line(component, .response(200, headers: Self.fields)) }
        let dictionary = MessageComponent.field("Example-Dict")
        #expect(try line(dictionary.structured) == "\"example-dict\";sf: a=1, b=2;x=1;y=2, c=(a b c), d")
        #expect(try line(dictionary.member("a")) == "\"example-dict\";key=\"a\": 1")
        #expect(try line(dictionary.member("d")) == "\"example-dict\";key=\"d\": ?1")
        #expect(try line(dictionary.member("b")) == "\"example-dict\";key=\"b\": 2;x=1;y=2")
        #expect(try line(dictionary.member("c")) == "\"example-dict\";key=\"c\": (a b c)")
        #expect(
            try line(.field("Example-Header").bytes) == "\"example-header\";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:")
        #expect(try line(.field("X-Text").bytes) == "\"x-text\";bs: :w6k=:")
        let trailers = SignableMessage.response(200, trailers: ["Expires": "Wed, 9 Nov 2022 07:28:00 GMT"])
        #expect(try Self.line(.field("Expires").inTrailers, trailers) == "\"expires\";tr: Wed, 9 Nov 2022 07:28:00 GMT")
    }

    @Test(
        "derived components",
        arguments: [
            (.method, "\"@method\": POST"), (.targetURI, "\"@target-uri\": https://www.example.com/path?param=value"),
            (.authority, "\"@authority\": www.example.com"), (.scheme, "\"@scheme\": https"),
            (.requestTarget, "\"@request-target\": /path?param=value"), (.path, "\"@path\": /path"), (.query, "\"@query\": ?param=value"),
        ] as [(MessageComponent, String)])
    func derived(component: MessageComponent, expected: String) throws {
        let message = SignableMessage.request(.post, "HTTPS://user:pw@www.Example.com:443/path?param=value#part")
        #expect(try Self.line(component, message) == expected)
        #expect(throws: MessageSignatureError.unsupportedComponent(component.description)) {
            try SignableMessage.response(200).signatureBase(SignatureInput([component]))
        }
    }

    @Test("targets of other forms, and parts that are missing") func targets() throws {
        let bare = SignableMessage.request(.options, "http://[::1]:8080", target: "*")
        #expect(try Self.line(.requestTarget, bare) == "\"@request-target\": *")
        #expect(try Self.line(.path, bare) == "\"@path\": /")
        #expect(try Self.line(.query, bare) == "\"@query\": ?")
        #expect(try Self.line(.targetURI, bare) == "\"@target-uri\": http://[::1]:8080/")
        #expect(try Self.line(.query, .request(.get, "http://a/?")) == "\"@query\": ?")
        #expect(try Self.line(.targetURI, .request(.get, "http://a/?")) == "\"@target-uri\": http://a/?")
        #expect(throws: MessageSignatureError.invalidURL("/a")) { try Self.line(.path, .request(.get, "/a")) }
    }

    @Test("the host of a request is that of its URL") func hosts() throws {
        let message = SignableMessage.request(.get, "https://me.example/", headers: ["Host": "other.example"])
        #expect(try Self.line(.targetURI, message) == "\"@target-uri\": https://me.example/")
    }

    @Test(
        "parameters of a query",
        arguments: [
            ("baz", "\"@query-param\";name=\"baz\": batman"), ("qux", "\"@query-param\";name=\"qux\": "),
            ("var", "\"@query-param\";name=\"var\": this%20is%20a%20big%0Amultiline%20value"),
            ("bar", "\"@query-param\";name=\"bar\": with%20plus%20whitespace"),
            ("façade\": ", "\"@query-param\";name=\"fa%C3%A7ade%22%3A%20\": something"),
        ] as [(String, String)])
    func queries(name: String, expected: String) throws {
        let url =
            "https://www.example.com/path?baz=batman&qux=&var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace"
            + "&fa%C3%A7ade%22%3A%20=something"
        #expect(try Self.line(.queryParameter(name), .request(.get, url)) == expected)
    }

    @Test("a status has three digits", arguments: [(200, "200"), (99, "099")] as [(Int, String)]) func statuses(number: Int, text: String)
        throws
    {
        #expect(try Self.line(.status, .response(number)) == "\"@status\": \(text)")
    }

    // MARK: What can't be covered

    private static func error(_ components: [MessageComponent], _ message: SignableMessage) -> MessageSignatureError? {
        do throws(MessageSignatureError) {
            _ = try message.signatureBase(SignatureInput(components))
            return nil
        } catch {
            return error
        }
    }

    @Test("what a message lacks is named") func missing() {
        let request = SignableMessage.request(.get, "https://example.com/?a=1&b=1&b=2", headers: Self.fields)
        #expect(Self.error(["x-none"], request) == .missingComponent("\"x-none\""))
        #expect(Self.error([.field("host").inTrailers], request) == .missingComponent("\"host\";tr"))
        #expect(Self.error([.field("example-dict").member("z")], request) == .missingComponent("\"example-dict\";key=\"z\""))
        #expect(Self.error([.queryParameter("c")], request) == .missingComponent("\"@query-param\";name=\"c\""))
        #expect(Self.error([.queryParameter("b")], request) == .invalidValue("\"@query-param\";name=\"b\""))
        #expect(Self.error([.field("x-text")], request) == .invalidValue("\"x-text\""))
        #expect(Self.error([.field("x-break")], request) == .invalidValue("\"x-break\""))
        #expect(
            Self.error([.field("x-list").structured], request) == .invalidValue("\"x-list\";sf"), "a list, or a dictionary with one key")
        #expect(Self.error([.field("x-text").structured], request) == .invalidValue("\"x-text\";sf"))
        #expect(Self.error([.field("x-text").member("a")], request) == .invalidValue("\"x-text\";key=\"a\""))
    }

    @Test(
        "what is contradictory, repeated or unknown is refused",
        arguments: [
            ["@signature-params"], ["@unknown"], ["@status"], [.method, .method], [.field("host").bytes.structured],
            [.field("host").bytes.member("a")], [MessageComponent.method.structured], [.field("host").ofRequest], ["@query-param"], ["a b"],
            [.field("host").structured.inTrailers, .field("host").inTrailers.structured],
        ] as [[MessageComponent]])
    func unsupported(components: [MessageComponent]) {
        let message = SignableMessage.request(.get, "https://example.com/", headers: Self.fields, trailers: ["Host": "a"])
        #expect(Self.error(components, message) == .unsupportedComponent(components.last?.description ?? ""))
    }

    @Test("parameters that structured fields can't have are refused") func text() throws {
        let message = SignableMessage.request(.get, "https://example.com/")
        #expect(throws: MessageSignatureError.invalidParameter) { try message.signatureBase(SignatureInput([], keyID: "é")) }
        let key = try SigningKey(secret: [1])
        #expect(throws: MessageSignatureError.invalidParameter) { try message.signed(as: "A", with: key, covering: SignatureInput([])) }
    }
}
