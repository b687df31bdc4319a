// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SerializersTests {
    private struct Pair: Codable, Equatable, Sendable {
        let a: Int
    }

    private static func response(_ status: Int, _ contentType: String? = nil) -> HTTPURLResponse? {
        URL(string: "http://mock/").flatMap {
            HTTPURLResponse(
                url: $0, statusCode: status, httpVersion: nil, headerFields: contentType.map { ["Content-Type": $0] })
        }
    }

    private static func run<Value>(
        _ serializer: DataResponseSerializer<Value>, _ data: Data?, status: Int = 200, type: String? = nil, error: (any Error)? = nil
    ) -> Result<Value, any Error> {
        serializer.serializeResponse(nil, response(status, type), data, error)
    }

    private static func isInput<Value>(_ result: Result<Value, any Error>, nilOnly: Bool) -> Bool {
        switch result {
        case .failure(CurlewError.responseSerializationFailed(.inputDataNil, _)): nilOnly
        case .failure(CurlewError.responseSerializationFailed(.inputDataNilOrZeroLength, _)): !nilOnly
        default: false
        }
    }

    @Test("a missing or empty body is an error where nothing can be made of it")
    func emptyBodies() throws {
        #expect(Self.isInput(Self.run(.data, nil), nilOnly: true))
        #expect(Self.isInput(Self.run(.string(), nil), nilOnly: true))
        #expect(try Self.run(.data, Data()).get() == Data())
        #expect(try Self.run(.string(), Data()).get().isEmpty)
        for data in [nil, Data()] {
            #expect(Self.isInput(Self.run(.json(), data), nilOnly: false))
            #expect(Self.isInput(Self.run(.propertyList(), data), nilOnly: false))
            #expect(Self.isInput(Self.run(.decodable(of: Pair.self), data), nilOnly: false))
        }
    }

    @Test("an empty body is decoded as nil, if the type is optional")
    func optionals() throws {
        for (data, status) in [(nil, 204), (Data(), 205), (Data(), 200)] {
            #expect(try Self.run(.decodable(of: Pair?.self), data, status: status).get() == nil)
            #expect(try Self.run(.decodable(of: [Pair]?.self), data, status: status).get() == nil)
            #expect(Self.isInput(Self.run(.decodable(of: [Pair].self), data, status: status), nilOnly: false))
        }
        #expect(try Self.run(.decodable(of: Pair?.self), Data(#"{"a":1}"#.utf8)).get() == Pair(a: 1))
        #expect(try Self.run(.decodable(of: Pair?.self), Data("null".utf8)).get() == nil)
        // Without a response there is nothing that is empty.
        #expect(
            Self.isInput(DataResponseSerializer.decodable(of: Pair?.self).serializeResponse(nil, nil, nil, nil), nilOnly: false))
    }

    @Test("204 and 205 give the empty value", arguments: [204, 205])
    func noContent(_ status: Int) throws {
        for data in [nil, Data()] {
            #expect(try Self.run(.data, data, status: status).get() == Data())
            #expect(try Self.run(.string(), data, status: status).get().isEmpty)
            #expect(try Self.run(.json(), data, status: status).get() is NSNull)
            #expect(try Self.run(.propertyList(), data, status: status).get() is NSNull)
        }
    }

    @Test("an error passes through all of them")
    func errors() {
        let data = Data("{}".utf8)
        func isPassed<Value>(_ result: Result<Value, any Error>) -> Bool {
            if case .failure(let error) = result { error as? UserError == UserError() } else { false }
        }
        #expect(isPassed(Self.run(.data, data, error: UserError())))
        #expect(isPassed(Self.run(.string(), data, error: UserError())))
        #expect(isPassed(Self.run(.json(), data, status: 204, error: UserError())))
        #expect(isPassed(Self.run(.propertyList(), data, error: UserError())))
        #expect(isPassed(Self.run(.decodable(of: Pair.self), data, error: UserError())))
    }

    private static let texts: [(encoding: String.Encoding?, type: String?, bytes: [UInt8], text: Result<String, TextFailure>)] = [
        (nil, nil, [0xC3, 0xA9], .success("é")), (nil, nil, [0xE9], .success("é")), (nil, "text/html", [0xC3, 0xA9], .success("é")),
        (nil, "text/html", [0xE9], .success("é")), (nil, "application/json", [0xC3, 0xA9], .success("é")),
        (nil, "application/json", [0xE9], .failure(.invalid(.utf8))), (nil, "text/event-stream", [0xE9], .failure(.invalid(.utf8))),
        (nil, "text/xml", Array("<?xml encoding='latin1'?>".utf8) + [0xE9], .success("<?xml encoding='latin1'?>é")),
        (nil, "text/plain;charset=\"UTF-8\"", [0xC3, 0xA9], .success("é")),
        (nil, "text/plain;charset=utf-8", [0xE9], .failure(.invalid(.utf8))),
        (nil, "text/plain; format=flowed; Charset=iso-8859-1", [0xC3, 0xA9], .success("Ã©")),
        (nil, "text/plain; charset=gbk", [0xC4, 0xE3], .success("你")),
        (nil, "text/plain; charset=gbk", [0xC4], .failure(.invalid(.init(rawValue: 0x8000_0631)))),
        (nil, "text/plain; charset=unheard-of", [0x41], .failure(.unknown("unheard-of"))),
        (nil, "text/plain; charset=iso-8859-1", [0xFE, 0xFF, 0, 0x41], .success("A")),
        (.utf8, "text/plain; charset=iso-8859-1", [0xE9], .failure(.invalid(.utf8))),
        (.isoLatin1, "text/plain; charset=utf-8", [0xC3, 0xA9], .success("Ã©")),
        (.isoLatin1, "text/plain; charset=unheard-of", [0xE9], .success("é")),
        (.isoLatin1, nil, [0xFE, 0xFF], .success("þÿ")), (.init(rawValue: 0x8000_0A03), nil, [0xA7, 0x41], .success("你")),
    ]

    private enum TextFailure: Error, Equatable {
        case invalid(String.Encoding)
        case unknown(String)
        case other

        init(_ error: any Error) {
            switch error {
            case CurlewError.responseSerializationFailed(.stringSerializationFailed(let encoding), _): self = .invalid(encoding)
            case CurlewError.responseSerializationFailed(.unknownCharset(let name), _): self = .unknown(name)
            default: self = .other
            }
        }
    }

    @Test(arguments: texts.indices)
    func `text is read in the given encoding, else in that of the response`(_ row: Int) throws {
        let (encoding, type, bytes, text) = Self.texts[row]
        #expect(Self.run(.string(encoding: encoding), Data(bytes), type: type).mapError { TextFailure($0) } == text)
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data(bytes), to: "file")
        let download = DownloadResponseSerializer.string(encoding: encoding).serializeResponse(nil, Self.response(200, type), file, nil)
        #expect(download.mapError { TextFailure($0) } == text)
    }

    /// A value of arrays.
    private struct Nested: Decodable, Sendable {
        init(from decoder: any Decoder) throws {
            var values = try decoder.unkeyedContainer()
            while !values.isAtEnd { _ = try values.decode(Nested.self) }
        }
    }

    /// A binary property list of arrays, each of which has the next one so many times; the last one has the first, or is empty.
    private static func arrays(_ count: Int, times: UInt8, isCircular: Bool = false) -> Data {
        func bytes(_ number: Int, _ size: Int) -> [UInt8] { (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }
        var list = Array("bplist00".utf8)
        var offsets: [Int] = []
        for index in 0..<count {
            offsets.append(list.count)
            let isLast = index == count - 1
            list.append(0xA0 | (isLast ? isCircular ? 1 : 0 : times))
            if !isLast || isCircular { for _ in 0..<(isLast ? 1 : times) { list += bytes(isLast ? 0 : index + 1, 2) } }
        }
        let table = list.count
        for offset in offsets { list += bytes(offset, 4) }
        list += [0, 0, 0, 0, 0, 0, 4, 2]
        for number in [count, 0, table] { list += bytes(number, 8) }
        return Data(list)
    }

    @Test("a property list that expands, contains itself or is nested deeply is refused before it is parsed")
    func boundsOfPropertyLists() throws {
        let (open, close) = (String(repeating: "<array>", count: 20_000), String(repeating: "</array>", count: 20_000))
        let xml = Data("<plist>\(open)\(close)</plist>".utf8)
        let decoder = PropertyListDecoder()
        let excessive = [Self.arrays(9, times: 10), Self.arrays(600, times: 1), Self.arrays(3, times: 1, isCircular: true)]
        for list in excessive + [xml] {
            guard
                case .failure(CurlewError.responseSerializationFailed(.propertyListSerializationFailed, _)) = Self.run(
                    .propertyList(), list),
                case .failure(CurlewError.responseSerializationFailed(.decodingFailed, _)) = Self.run(
                    .decodable(of: Nested.self, decoder: decoder), list)
            else {
                Issue.record("\(list.count)")
                continue
            }
        }
        for list in [Self.arrays(5, times: 10), Self.arrays(400, times: 1)] {
            #expect(try Self.run(.propertyList(), list).get() is [Any])
        }
        // Many values, none of which is shared.
        let numbers = try PropertyListSerialization.data(fromPropertyList: Array(0..<400_000), format: .binary, options: 0)
        #expect((try Self.run(.propertyList(), numbers).get() as? [Any])?.count == 400_000)
    }

    @Test("JSON, property lists and decodable values are made, or the parser's error is kept")
    func values() throws {
        let json = Data(#"{"a":1}"#.utf8)
        #expect((try Self.run(.json(), json).get() as? [String: Int]) == ["a": 1])
        #expect((try Self.run(.json(), Data("3".utf8)).get() as? Int) == 3)
        #expect(try Self.run(.decodable(of: Pair.self), json).get() == Pair(a: 1))
        let plist = try PropertyListEncoder().encode(Pair(a: 2))
        #expect((try Self.run(.propertyList(), plist).get() as? [String: Int]) == ["a": 2])
        let decoder = PropertyListDecoder()
        #expect(try Self.run(.decodable(of: Pair.self, decoder: decoder), plist).get() == Pair(a: 2))

        let broken = Data("{".utf8)
        guard
            case .failure(CurlewError.responseSerializationFailed(.jsonSerializationFailed, _)) = Self.run(
                .json(), broken),
            case .failure(CurlewError.responseSerializationFailed(.propertyListSerializationFailed, _)) = Self.run(
                .propertyList(), broken),
            case .failure(CurlewError.responseSerializationFailed(.decodingFailed, _)) = Self.run(
                .decodable(of: Pair.self), broken)
        else {
            Issue.record("a broken body was read")
            return
        }
    }

    @Test("downloads are read from their file, and a missing one is an error")
    func downloads() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("text".utf8), to: "file")
        #expect(try DownloadResponseSerializer.string().serializeResponse(nil, Self.response(200), file, nil).get() == "text")
        #expect(try DownloadResponseSerializer.url.serializeResponse(nil, nil, file, nil).get() == file)
        guard
            case .failure(CurlewError.responseSerializationFailed(.inputFileNil, _)) = DownloadResponseSerializer.data
                .serializeResponse(nil, Self.response(204), nil, nil),
            case .failure(CurlewError.responseSerializationFailed(.inputFileReadFailed, _)) = DownloadResponseSerializer.json()
                .serializeResponse(nil, nil, directory.file("none"), nil)
        else {
            Issue.record("a missing file was read")
            return
        }
    }

    @Test("a serializer of one's own sees everything, errors too")
    func ownSerializer() async {
        let manager = SessionManager(mock: .answering(404, [:], "body"))
        let serializer = DataResponseSerializer<String> { request, response, data, error in
            .success("\(request?.url?.path ?? "") \(response?.statusCode ?? 0) \(data?.count ?? 0) \(statusOf(error) ?? 0)")
        }
        let values = Inbox<String?>()
        manager.request("http://mock/p").validate().response(responseSerializer: serializer) { values.put($0.value) }
        #expect(await values[0] == "/p 404 4 404")
    }

    // MARK: Responses

    @Test("responses change their value or their error, and keep the rest")
    func mapping() throws {
        let success = DataResponse<Int>(request: nil, response: Self.response(201), data: Data([1]), result: .success(1))
        let failure = DataResponse<Int>(request: nil, response: nil, data: nil, result: .failure(UserError(number: 1)))
        #expect(success.map { "\($0)" }.value == "1")
        #expect(success.map { "\($0)" }.response?.statusCode == 201)
        #expect(failure.map { "\($0)" }.error as? UserError == UserError(number: 1))
        #expect(success.flatMap { _ in throw UserError(number: 2) }.map { (_: Int) in }.error as? UserError == UserError(number: 2))
        #expect(failure.mapError { _ in UserError(number: 3) }.error as? UserError == UserError(number: 3))
        #expect(success.mapError { _ in UserError(number: 3) }.value == 1)
        #expect(failure.flatMapError { _ -> UserError in throw UserError(number: 4) }.error as? UserError == UserError(number: 4))
        #expect(failure.flatMapError { _ in UserError(number: 5) }.error as? UserError == UserError(number: 5))

        let download = DownloadResponse<Int>(
            request: nil, response: nil, temporaryURL: nil, destinationURL: URL(fileURLWithPath: "/x"), result: .success(1))
        #expect(download.map { $0 + 1 }.value == 2)
        #expect(download.flatMap { _ -> Int in throw UserError() }.error as? UserError == UserError())
        #expect(download.map { $0 }.fileURL?.path == "/x")
        #expect(download.mapError { _ in UserError() }.value == 1)
        #expect(download.flatMapError { _ in UserError() }.value == 1)
    }

    @Test("descriptions hide user info and header fields")
    func descriptions() async throws {
        let manager = SessionManager(mock: .answering(200, [:], "body"))
        let request = manager.request("http://user:s3cret@mock/path", headers: ["Authorization": "s3cret"])
        let response = await request.serializingData().response
        for text in [request.description, response.description, response.debugDescription] { #expect(!text.contains("s3cret")) }
        #expect(request.description == "GET http://mock/path (200)")
        #expect(response.debugDescription.contains("[Response]: 200"))
    }

    @Test("the built-in serializers are members of their types")
    func members() async throws {
        let manager = SessionManager(mock: .answering(200, [:], #"{"a":1}"#))
        let data = manager.request("http://mock/")
        let values = Inbox<Bool>()
        data.response(responseSerializer: .json()) { values.put(($0.value as? [String: Int]) == ["a": 1]) }
            .response(responseSerializer: .string(encoding: .utf8)) { values.put($0.value == #"{"a":1}"#) }
            .response(responseSerializer: .decodable(of: Pair.self)) { values.put($0.value == Pair(a: 1)) }
        #expect(await values.first(3) == [true, true, true])
        #expect(try await data.serializingResponse(using: .data).value == Data(#"{"a":1}"#.utf8))
        #expect(try await data.serializingResponse(using: .decodable(of: Pair.self)).value == Pair(a: 1))
        let download = manager.download("http://mock/")
        #expect(try await download.serializingResponse(using: .string()).value == #"{"a":1}"#)
        #expect(try await download.serializingResponse(using: .decodable(of: Pair.self)).value == Pair(a: 1))
        #expect(try await download.serializingResponse(using: .url).value == download.serializingURL().value)
    }

    @Test("a timeline's durations are the differences of its times")
    func timeline() async {
        let endless = Timeline(
            requestStartDate: Date(timeIntervalSinceReferenceDate: -.infinity), initialResponseDate: Date(),
            requestCompletedDate: Date(timeIntervalSinceReferenceDate: .nan), serializationCompletedDate: .distantFuture)
        #expect(endless.latency == .seconds(1e18) && endless.requestDuration < .zero && Timeline().totalDuration == .zero)
        let timeline = Timeline(
            requestStartDate: Date(timeIntervalSinceReferenceDate: 1), initialResponseDate: Date(timeIntervalSinceReferenceDate: 1.25),
            requestCompletedDate: Date(timeIntervalSinceReferenceDate: 2),
            serializationCompletedDate: Date(timeIntervalSinceReferenceDate: 2.5))
        let durations = [timeline.latency, timeline.requestDuration, timeline.serializationDuration, timeline.totalDuration]
        #expect(durations == [.milliseconds(250), .seconds(1), .milliseconds(500), .milliseconds(1500)])
        #expect(timeline.description.contains("\"Latency\": 0.250 secs"))
        let manager = SessionManager(mock: .answering(200, [:], "body"))
        let actual = await manager.request("http://mock/").serializingData().response.timeline
        #expect(actual.requestStartDate > Date(timeIntervalSinceReferenceDate: 0))
        #expect(actual.latency >= .zero && actual.latency <= actual.requestDuration && actual.requestDuration <= actual.totalDuration)
    }
}
