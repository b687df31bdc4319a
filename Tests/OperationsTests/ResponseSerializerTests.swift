// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct ResponseSerializerTests {
    private func response(_ type: String?, status: Int = 200) throws -> HTTPURLResponse {
        let url = try #require(URL(string: "http://example.org/"))
        return try #require(
            HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: type.map { ["Content-Type": $0] }))
    }

    // MARK: Validation

    @Test("a wrong status is −1011, a wrong type −1016, each with response and body; both nest")
    func validation() throws {
        let serializer = JSONResponseSerializer()
        let body = Data("{}".utf8)
        let status = try #require(serializer.serialize(response("application/json", status: 404), body).error as? URLError)
        #expect(status.code.rawValue == -1011)
        #expect(status.userInfo[OperationErrorKey.data] as? Data == body)
        #expect((status.userInfo[OperationErrorKey.response] as? HTTPURLResponse)?.statusCode == 404)
        let type = try #require(serializer.serialize(response("text/html"), body).error as? URLError)
        #expect(type.code.rawValue == -1016 && type.userInfo[NSUnderlyingErrorKey] == nil)
        let both = try #require(serializer.serialize(response(nil, status: 500), body).error as? URLError)
        #expect(both.code.rawValue == -1016)
        #expect((both.userInfo[NSUnderlyingErrorKey] as? URLError)?.code == .badServerResponse)
        #expect(try serializer.serialize(response("text/html"), Data()).error == nil)
        let plain = HTTPResponseSerializer()
        #expect(try plain.serialize(response(nil), body).object as? Data == body)
        #expect(try plain.serialize(response(nil, status: 300), body).error != nil)
    }

    @Test("a validation error's texts contain neither secrets of the response nor control characters")
    func texts() throws {
        let url = try #require(URL(string: "http://user:s3cret@h/?access_token=s3cret"))
        let fields = ["Content-Type": "text/\u{1B}[2J\u{9B}", "Set-Cookie": "a=s3cret"]
        let response = try #require(HTTPURLResponse(url: url, statusCode: 404, httpVersion: "HTTP/1.1", headerFields: fields))
        let error = try #require(JSONResponseSerializer().serialize(response, Data("{}".utf8)).error as? URLError)
        var reflection = ""
        dump(error, to: &reflection)
        for text in ["\(error)", String(reflecting: error), "\(error as NSError)", error.localizedDescription, reflection] {
            #expect(!text.contains("s3cret") && text.unicodeScalars.allSatisfy { !$0.isControlInText || $0 == "\n" })
        }
        let kept = error.userInfo[OperationErrorKey.response] as? HTTPURLResponse
        #expect(kept?.value(forHTTPHeaderField: "Set-Cookie") == "a=s3cret" && kept?.url == url)
    }

    @Test("the body of a rejected response is read, too")
    func bodyOfFailure() throws {
        let result = JSONResponseSerializer().serialize(try response("application/json", status: 422), Data(#"{"why":"x"}"#.utf8))
        #expect((result.object as? [String: String]) == ["why": "x"])
        #expect((result.error as? URLError)?.code == .badServerResponse)
    }

    @Test("an empty body is empty data for the plain serializer, and no object for the others", arguments: [200, 204, 404])
    func emptyBody(status: Int) async throws {
        let plain = HTTPResponseSerializer().serialize(try response(nil, status: status), Data())
        #expect(plain.object as? Data == Data() && (plain.error == nil) == (status < 300))
        #expect(HTTPResponseSerializer().serialize(try response(nil), nil).object == nil)
        #expect(JSONResponseSerializer().serialize(try response(nil), Data()).object == nil)
        let compound = CompoundResponseSerializer([JSONResponseSerializer(), HTTPResponseSerializer()])
        #expect(compound.serialize(try response(nil), Data()).object as? Data == Data())
        let server = try LoopbackServer { _, _ in .status(status) }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        await operation.runToEnd()
        #expect(operation.responseObject as? Data == Data() && (operation.error == nil) == (status < 300))
    }

    // MARK: JSON

    @Test("JSON is decoded in its charset, and nulls are removed if requested")
    func json() throws {
        var serializer = JSONResponseSerializer()
        let type = try response("application/json")
        #expect(serializer.serialize(type, Data(" ".utf8)).object == nil && serializer.serialize(type, Data(" ".utf8)).error == nil)
        #expect(serializer.serialize(type, Data()).error == nil && serializer.serialize(type, nil).object == nil)
        #expect(serializer.serialize(type, Data("{".utf8)).error != nil)
        let latin = try response("application/json; charset=iso-8859-1")
        let accented = try #require(#"["é"]"#.data(using: .isoLatin1))
        #expect(serializer.serialize(latin, accented).object as? [String] == ["é"])
        let chinese = try response("application/json; charset=gbk")
        #expect(serializer.serialize(chinese, Data([0x5B, 0x22, 0xC4, 0xE3, 0x22, 0x5D])).object as? [String] == ["你"])
        let unknown = try response("application/json; charset=unheard-of")
        #expect(serializer.serialize(unknown, Data(#"["é"]"#.utf8)).object as? [String] == ["é"])
        let nested = Data(#"{"a":null,"b":[{"c":null,"d":1},null]}"#.utf8)
        #expect((serializer.serialize(type, nested).object as? [String: Any])?.count == 2)
        serializer.removesKeysWithNullValues = true
        let clean = try #require(serializer.serialize(type, nested).object as? [String: Any])
        let array = try #require(clean["b"] as? [Any])
        #expect(clean.count == 1 && array.count == 2 && (array[0] as? [String: Any])?.keys.sorted() == ["d"])
        serializer.readingOptions = .fragmentsAllowed
        #expect(serializer.serialize(type, Data("7".utf8)).object as? Int == 7)
    }

    // MARK: Others

    @Test("property lists in either format are decoded; a 204 has none")
    func propertyList() throws {
        let serializer = PropertyListResponseSerializer()
        let type = try response("application/x-plist")
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let data = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: format, options: 0)
            #expect(serializer.serialize(type, data).object as? [String: Int] == ["a": 1])
        }
        let empty = serializer.serialize(try response(nil, status: 204), Data())
        #expect(empty.object == nil && empty.error == nil)
        #expect(serializer.serialize(type, Data("no list".utf8)).error != nil)
    }

    private final class Collector: NSObject, XMLParserDelegate {
        var names: [String] = []

        func parser(
            _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName qName: String?,
            attributes attributeDict: [String: String] = [:]
        ) {
            names.append(elementName)
        }
    }

    @Test("XML is a parser or a document; one with a document type declaration is rejected")
    func xml() throws {
        let data = Data("<a><b>text</b></a>".utf8)
        let parser = try #require(XMLParserResponseSerializer().serialize(response("application/xml"), data).object as? XMLParser)
        let collector = Collector()
        parser.delegate = collector
        #expect(parser.parse() && collector.names == ["a", "b"])
        let serializer = XMLDocumentResponseSerializer()
        let document = try #require(serializer.serialize(response("text/xml"), data).object as? XMLDocument)
        #expect(document.rootElement()?.name == "a")
        for text in ["<a>", "<a></b>", " ", "text", #"<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>"#] {
            for encoding in [String.Encoding.utf8, .utf16] {
                let result = try serializer.serialize(response("text/xml"), text.data(using: encoding))
                #expect(result.error is OperationError && result.object == nil, "\(text)")
            }
        }
        #expect(try XMLParserResponseSerializer().serialize(response("application/json"), data).error != nil)
    }

    @Test("XML with more attributes than are parsed in reasonable time is rejected")
    func attributes() throws {
        func serialized(_ count: Int, _ encoding: String.Encoding, by serializer: some ResponseSerialization) throws -> (any Error)? {
            let text = "<a><b \((0..<count).map { "d\($0) = '1'" }.joined(separator: " "))/></a>"
            let data = try #require(text.data(using: encoding))
            return serializer.serialize(try response("text/xml"), data).error
        }
        for encoding in [String.Encoding.utf8, .utf16] {
            #expect(try serialized(10_001, encoding, by: XMLParserResponseSerializer()) is OperationError)
            #expect(try serialized(10_001, encoding, by: XMLDocumentResponseSerializer()) is OperationError)
            #expect(try serialized(9_000, encoding, by: XMLDocumentResponseSerializer()) == nil)
        }
    }

    static let images: [(format: ImageHeader.Format, bytes: [UInt8])] = [
        (.png, [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 44, 0, 0, 0, 7]),
        (
            .jpeg,
            [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, 0xC4, 0, 3, 9, 0xFF, 0xC2, 0, 11, 8, 0, 7, 1, 44]
        ),
        (.gif, Array("GIF89a".utf8) + [44, 1, 7, 0]),
        (.bmp, Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [40, 0, 0, 0, 44, 1, 0, 0, 0xF9, 0xFF, 0xFF, 0xFF]),
        (
            .webp,
            Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBPVP8X".utf8) + [UInt8](repeating: 0, count: 8) + [43, 1, 0, 6, 0, 0]
        ),
        (
            .webp,
            Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBPVP8 ".utf8) + [UInt8](repeating: 0, count: 7)
                + [0x9D, 1, 0x2A, 44, 1, 7, 0]
        ),
        (
            .webp,
            Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBPVP8L".utf8) + [0, 0, 0, 0, 0x2F] + [0x2B, 0x81, 1, 0]
        ),
        (
            .tiff,
            [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 2, 1, 0, 0, 3, 0, 0, 0, 1, 1, 44, 0, 0, 1, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 7]
        ),
    ]

    @Test("an image's header gives its format and size; a truncated or invalid one gives none", arguments: images)
    func image(_ item: (format: ImageHeader.Format, bytes: [UInt8])) throws {
        let data = Data(item.bytes)
        let header = try #require(ImageResponseSerializer().serialize(response("image/png"), data).object as? ImageHeader)
        #expect(header.format == item.format && header.width == 300 && header.height == 7 && header.data == data)
        for count in 0..<data.count { #expect(ImageHeader(data.prefix(count)) == nil) }
        #expect(ImageHeader((Data([9]) + data).dropFirst())?.width == 300)
    }

    @Test("bytes that are not an image fail")
    func noImage() throws {
        let result = ImageResponseSerializer().serialize(try response("image/png"), Data("text".utf8))
        guard case OperationError.imageNotRecognised? = result.error else { throw TestError("no error") }
        #expect(ImageHeader(Data([0, 0, 1, 0, 1, 0, 16, 0]))?.height == 256)
    }

    @Test("the first serializer that succeeds makes the object; otherwise it is the body")
    func compound() throws {
        let serializer = CompoundResponseSerializer([JSONResponseSerializer(), PropertyListResponseSerializer()])
        #expect(try serializer.serialize(response("application/json"), Data("[1]".utf8)).object as? [Int] == [1])
        let list = try PropertyListSerialization.data(fromPropertyList: [2], format: .xml, options: 0)
        #expect(try serializer.serialize(response("application/x-plist"), list).object as? [Int] == [2])
        let text = try serializer.serialize(response("text/plain"), Data("text".utf8))
        #expect(text.object as? Data == Data("text".utf8) && text.error == nil)
        #expect(try serializer.serialize(response("text/plain", status: 500), Data("text".utf8)).error != nil)
    }

    // MARK: In operations

    @Test("the serializer's error is the operation's, and the object is available with it")
    func operation() async throws {
        let server = try LoopbackServer { _, _ in try .json(["why": "x"], status: 400) }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.responseSerializer = JSONResponseSerializer()
        let log = Log<String>()
        operation.setCompletionBlock(success: { _, _ in log.append("success") }) { operation, error in
            log.append("\((error as? URLError)?.code.rawValue ?? 0) \((operation.responseObject as? [String: String]) ?? [:])")
        }
        await operation.runToEnd()
        await log.wait(for: 1)
        #expect(log.elements == [#"-1011 ["why": "x"]"#])
        await #expect(throws: URLError.self) { try await operation.object(as: [String: String].self) }
        #expect((operation.error as? URLError)?.userInfo[OperationErrorKey.request] as? URLRequest == operation.request)
        let lenient = operation.duplicate()
        lenient.responseSerializer.acceptance.statusCodes = nil
        #expect(try await lenient.run() == operation.responseData)
        #expect(lenient.response?.statusCode == 400 && lenient.responseObject as? [String: String] == ["why": "x"])
    }

    @Test("an object is awaited by its type")
    func awaited() async throws {
        let server = try LoopbackServer { _, _ in try .json(["a": 1]) }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.responseSerializer = JSONResponseSerializer()
        operation.start()
        #expect(try await operation.object(as: [String: Int].self) == ["a": 1])
        await #expect(throws: URLError.self) { try await operation.object(as: [String].self) }
    }
}
