// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport

/// A server of DNS over HTTPS (RFC 8484) that knows one name, with the address 127.0.0.1.
struct NameServer {
    let server: LoopbackServer

    init(name: String, identity: ServerIdentity) throws {
        let known = name.lowercased()
        server = try LoopbackServer(tls: ServerTLS(identity)) { request, _ in
            guard request.method == "POST", request.header("Content-Type") == "application/dns-message",
                let reply = Self.reply(to: [UInt8](request.body), known: known)
            else { return .status(400) }
            return ServerResponse(
                status: 200, headers: [ServerField("Content-Type", "application/dns-message")], body: .data(Data(reply)))
        }
    }

    var url: String { server.url("/dns-query") }

    /// Replies to a query with one question (RFC 1035, section 4).
    private static func reply(to query: [UInt8], known: String) -> [UInt8]? {
        guard query.count > 17, query[4] == 0, query[5] == 1 else { return nil }
        var labels: [String] = []
        var index = 12
        while index < query.count, query[index] != 0 {
            let length = Int(query[index])
            guard index + length < query.count else { return nil }
            labels.append(String(decoding: query[(index + 1)...(index + length)], as: UTF8.self))
            index += length + 1
        }
        guard index + 5 <= query.count else { return nil }
        let isKnown = labels.joined(separator: ".").lowercased() == known
        let hasAddress = isKnown && query[index + 2] == 1
        let flags: [UInt8] = [0x81, isKnown ? 0x80 : 0x83]
        let header = query[0..<2] + flags + [0, 1, 0, hasAddress ? 1 : 0, 0, 0, 0, 0]
        let answer: [UInt8] = hasAddress ? [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1] : []
        return header + query[12..<(index + 5)] + answer
    }
}
