// SPDX-License-Identifier: Apache-2.0

/// The server side of NTLM: three exchanges on one connection. Only the user name is checked; digests are not verified.
public enum NTLMScript {
    /// The second of the three messages, in Base64: no target, the OEM character set, NTLM, and a challenge of eight bytes.
    public static let challenge: String = {
        var message = Data("NTLMSSP\0".utf8) + Data([2, 0, 0, 0]) + Data(count: 8)
        message += Data([0x02, 0x02, 0, 0]) + Data(1...8) + Data(count: 8)
        return message.base64EncodedString()
    }()

    /// Returns the message in a request and its number; nil if there is none.
    public static func message(_ request: ServerRequest) -> (number: UInt8, bytes: Data)? {
        guard let value = request.header("Authorization"), value.hasPrefix("NTLM "),
            let bytes = Data(base64Encoded: String(value.dropFirst(5))), bytes.starts(with: "NTLMSSP\0".utf8), bytes.count > 8
        else { return nil }
        return (bytes[8], bytes)
    }

    /// Returns a route that responds with "welcome" and the request's body to the given user, and with 401 to others.
    public static func route(user: String) -> LoopbackServer.Route {
        { request, _ in
            guard let (number, bytes) = message(request) else { return refusal("NTLM", "who are you") }
            guard number == 3 else { return refusal("NTLM \(challenge)", "prove it") }
            guard bytes.firstRange(of: Data(user.utf8)) != nil else { return refusal("NTLM", "refused") }
            return .ok("welcome " + String(decoding: request.body, as: UTF8.self))
        }
    }

    private static func refusal(_ field: String, _ body: String) -> ServerResponse {
        ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", field)], body: .data(Data(body.utf8)))
    }
}
