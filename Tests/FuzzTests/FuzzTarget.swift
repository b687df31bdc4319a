// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewEncoding
import CurlewHTTP
import Foundation

@testable import CurlewCore
@testable import CurlewTransport

/// A parser of untrusted input, with the properties that must hold for any input.
struct FuzzTarget: Sendable {
    /// The property that was violated.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The target's name, and that of the folder with the inputs run by the tests.
    let name: String
    /// Throws a ``Failure`` if a property is violated.
    let check: @Sendable (_ input: [UInt8]) throws -> Void

    static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }

    static let all = messages + cache + cookies + layers + texts + limits + partitions + signatures

    private static let messages = [
        FuzzTarget(name: "response-head", check: responseHead), FuzzTarget(name: "transfer-lines", check: transferLines),
        FuzzTarget(name: "content-range", check: contentRange), FuzzTarget(name: "content-type", check: contentType),
        FuzzTarget(name: "retry-after", check: retryAfter), FuzzTarget(name: "challenge", check: challenge),
        FuzzTarget(name: "multipart", check: multipart),
        FuzzTarget(name: "form", check: form), FuzzTarget(name: "resume-record", check: resumeRecord),
        FuzzTarget(name: "location", check: location), FuzzTarget(name: "content-coding", check: contentCoding),
        FuzzTarget(name: "public-key", check: publicKey), FuzzTarget(name: "address", check: address),
        FuzzTarget(name: "netlink", check: netlink),
    ]

    static func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw Failure(description: message()) }
    }

    static func text(_ input: [UInt8]) -> String { String(decoding: input, as: UTF8.self) }

    static func hasControls(_ text: String) -> Bool { text.utf8.contains { $0 == 13 || $0 == 10 || $0 == 0 } }

    /// Makes a response head with one field, whose value has no line break.
    private static func head(_ name: String, _ input: [UInt8]) -> ResponseHead? {
        let value = input.filter { $0 != 13 && $0 != 10 }
        return ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\(name): ".utf8) + value + Array("\r\n".utf8))
    }

    // MARK: Heads

    private static func responseHead(_ input: [UInt8]) throws {
        guard let head = ResponseHead(bytes: input) else { return }
        try require((0...999).contains(head.statusCode), "status \(head.statusCode)")
        _ = (head.httpVersion, head.reasonPhrase, head.isRedirect, head.isCoded)
        for header in head.headers {
            try require(!header.name.isEmpty, "a field without a name")
            try require(
                !header.name.utf8.contains { $0 == 13 || $0 == 10 || $0 == UInt8(ascii: ":") },
                "a name with a break: \(header.name.debugDescription)")
            try require(!hasControls(header.value), "a value with a break: \(header.value.debugDescription)")
            guard HTTPToken.isToken(header.name) else { continue }
            try require(head.value(for: header.name) != nil, "\(header.name.debugDescription) is listed and not found")
        }
        try require((head.expectedBodyLength ?? 0) >= 0, "negative length")
    }

    private static func transferLines(_ input: [UInt8]) throws {
        let limits = TransferState.HeadLimits(size: 4096, fieldSize: 1024, fieldCount: 100, interimResponses: 8)
        var state = TransferState(method: .get, mayRepeat: true, limits: limits)
        state.launched()
        _ = state.requestStarts(isStale: false)
        var heads = 0
        for line in input.split(separator: 10, omittingEmptySubsequences: false) {
            let action = (line + [10]).withUnsafeBytes { state.received(line: $0) }
            if case .deliver(let head) = action {
                heads += 1
                let codings = head.headers.values(for: "Transfer-Encoding").joined(separator: ",").lowercased()
                let names = codings.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
                let known = names.filter { !$0.isEmpty && $0 != "identity" }
                let hasBody = head.statusCode != 204 && head.statusCode != 304
                try require(!hasBody || known.isEmpty || known == ["chunked"], "framed by \(codings.debugDescription)")
            }
            if case .fail = action { break }
        }
        try require(heads <= 1, "\(heads) final heads")
        try require((state.announcedLength ?? 0) >= 0, "negative length")
        state.received(bodyBytes: input.count)
        if state.completed(code: CURLE_OK, message: "", usesProxy: false) == .success {
            try require(heads == 1, "success without a head")
            try require(state.announcedLength.map { $0 == Int64(input.count) } ?? true, "success with another length")
        }
    }

    // MARK: Fields

    private static func contentRange(_ input: [UInt8]) throws {
        switch ContentRange(text(input)) {
        case .part(let first, let last, let total)?:
            try require(first >= 0 && first <= last && last < total ?? .max, "\(first)-\(last)/\(total ?? -1)")
        case .none(let total)?: try require(total >= 0, "*/\(total)")
        case nil: break
        }
    }

    private static func contentType(_ input: [UInt8]) throws {
        guard let type = MediaType(text(input)) else { return }
        try require(type.accepts(type) || type.type.contains("*") || type.subtype.contains("*"), "\(type) does not accept itself")
        _ = head("Content-Type", input).flatMap { $0.value(for: "Content-Type") }.flatMap { MediaType($0) }
    }

    private static func retryAfter(_ input: [UInt8]) throws {
        guard let head = head("Retry-After", input), let wait = RetryAfter(head) else { return }
        try require((.zero ... .seconds(Int32.max)).contains(wait.delay), "delay \(wait.delay)")
    }

    private static func challenge(_ input: [UInt8]) throws {
        for challenge in AuthenticationChallenge.challenges(in: [text(input)]) {
            guard let digest = DigestChallenge(challenge),
                var session = DigestSession(digest, user: "us\"er", password: "pass", clientNonce: "c")
            else { continue }
            let answer = session.authorization(method: "GET", target: "/a?b")
            try require(!hasControls(answer), "controls in \(answer.debugDescription)")
        }
    }

    private static func location(_ input: [UInt8]) throws {
        guard let head = head("Location", input) else { return }
        let redirect = ResponseHead(statusCode: 302, headers: head.headers)
        let request = TransferRequest(url: "https://user:pw@origin.test:444/a/b?c#d", headers: ["Authorization": "x", "Cookie": "y"])
        guard let next = try? RedirectPolicy().next(after: request, redirect, redirectCount: 0) else { return }
        try require(["http", "https"].contains(URL(string: next.url)?.scheme?.lowercased()), next.url)
        try require(!next.url.utf8.contains { $0 <= 0x20 || $0 >= 0x7F }, "unescaped: \(next.url.debugDescription)")
        let url = URL(string: next.url)
        try require(url?.host?.isEmpty == false, "no host: \(next.url)")
        try require((try? next.url.normalizingHost()) == next.url, "a host that is not normalized: \(next.url)")
        let isOwnUser = url?.user == "user" && url?.password == "pw" && next.url.hasPrefix("https://user:pw@origin.test:444/")
        try require(url?.user == nil || isOwnUser, "a user of the Location's: \(next.url)")
        if url?.host?.lowercased() != "origin.test" || url?.port != 444 {
            try require(next.headers["Authorization"] == nil && next.headers["Cookie"] == nil, "credentials go to \(next.url)")
        }
    }

    // MARK: Bodies

    private static func multipart(_ input: [UInt8]) throws {
        let parts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return }
        let form = MultipartFormData()
        form.boundary = "B"
        let name = text(Array(parts[0]))
        form.append(Data(), withName: name, fileName: text(Array(parts[1])), mimeType: text(Array(parts[2])))
        guard let body = try? form.encode() else { return }
        // A delimiter, two fields, a blank line, an empty body, the end: the input must not add a line.
        let lines = text([UInt8](body)).replacingOccurrences(of: "\r\n", with: "\n").utf8.split(
            separator: 10, omittingEmptySubsequences: false)
        try require(lines.count == 7, "\(lines.count) lines in \(text([UInt8](body)).debugDescription)")
        try require(!body.contains(13) || lines.allSatisfy { !$0.contains(13) }, "a bare CR")
    }

    private static func form(_ input: [UInt8]) throws {
        let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false).map { text(Array($0)) }
        let parameters = [parts[0]: parts.count > 1 ? parts[1] : ""]
        let encoded: String = try URLEncodedFormEncoder().encode(parameters)
        try require(encoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "unescaped: \(encoded.debugDescription)")
        let pair = encoded.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { String($0).removingPercentEncoding }
        try require(pair == [parts[0], parameters[parts[0]]], "\(parameters) became \(encoded)")
        let escaped = PercentEncoding.escape(parts[0])
        try require(escaped.removingPercentEncoding == parts[0], "\(parts[0].debugDescription) became \(escaped)")
    }

    private static func resumeRecord(_ input: [UInt8]) throws {
        guard let record = try? ResumeRecord(Data(input)) else { return }
        try require(record.offset >= 0 && record.offset <= record.total ?? .max, "offset \(record.offset)")
        try require(!hasControls(record.validator), "controls in the validator")
        guard let data = record.data else { throw Failure(description: "can't be written") }
        try require(try ResumeRecord(data) == record, "changes when written and read")
    }

    private static func contentCoding(_ input: [UInt8]) throws {
        guard let first = input.first else { return }
        let codings = ["gzip", "deflate", "gzip, gzip", ContentDecoder.accepted]
        guard let decoder = try? ContentDecoder(codings: codings[Int(first) % codings.count]) else { return }
        var rest = input.dropFirst()
        var produced = 0
        while !rest.isEmpty {
            let goesOn: Bool? = try? rest.prefix(max(Int(first) / 4, 1)).withUnsafeBytes { piece in
                var input = piece
                while produced < 1 << 20, let step = try decoder.step(&input) { produced += step.bytes.count }
                return produced < 1 << 20
            }
            guard goesOn == true else { return }
            rest = rest.dropFirst(max(Int(first) / 4, 1))
        }
        _ = decoder.failureAtEnd
    }

    // MARK: Trust and network

    private static func publicKey(_ input: [UInt8]) throws {
        let data = Data(input)
        _ = (PublicKey(der: data), PublicKey.all(inPEM: data), Certificate(der: data), Certificate.all(inPEM: data))
    }

    private static func address(_ input: [UInt8]) throws {
        guard let address = NetworkAddress(text(input)) else {
            _ = AddressRange(text(input))
            return
        }
        try require(NetworkAddress(address.description) == address, "\(address) reads as another")
        try require(AddressRange(address.description)?.contains(address) == true, "\(address) is not in its own range")
    }

    private static func netlink(_ input: [UInt8]) throws {
        for message in NetlinkMessage.messages(in: input) {
            _ = (message.errorNumber, message.bytes, NetlinkLink(message), NetlinkRoute(message))
        }
    }
}
