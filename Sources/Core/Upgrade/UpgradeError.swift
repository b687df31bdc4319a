// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Why a connection was not handed over to another protocol. Later versions may add cases, so a `switch` needs a `default`.
public enum UpgradeError: Error, Sendable, Hashable {
    /// The server has responded with another status than 101, or with another protocol than the one that was asked for.
    case upgradeRefused(UpgradeRefusal)
    /// The server has closed the connection before it has responded.
    case connectionClosed
    /// What the server has sent is no response of HTTP/1.1: its head is malformed or longer than 64 KiB, or it has more than 32 interim
    /// responses.
    case malformedResponse
}

/// A response that refuses another protocol.
public struct UpgradeRefusal: Sendable, Hashable {
    /// Its status and header fields.
    public let responseHead: ResponseHead
    /// The first 64 KiB of its body, as it was sent: content codings are not decoded. Empty if the server sends no length and keeps the
    /// connection open.
    public let body: Data

    /// The status code.
    public var statusCode: Int { responseHead.statusCode }
}

extension UpgradeError: LocalizedError, LineConvertible {
    /// The reason, without what the server has sent but its status.
    package var line: String {
        switch self {
        case .upgradeRefused(let refusal) where refusal.statusCode == 101:
            "The server has switched to another protocol than the one asked for"
        case .upgradeRefused(let refusal): "The server has refused the protocol with status \(refusal.statusCode)"
        case .connectionClosed: "The server has closed the connection without a response"
        case .malformedResponse: "The server's response is not one of HTTP/1.1"
        }
    }

    /// The description.
    public var errorDescription: String? { description }
}

extension UpgradeRefusal: LineConvertible, RedactedReflectable {
    /// The status; not the fields or the body, which may have secrets.
    package var line: String { "UpgradeRefusal(\(statusCode))" }
    /// Shows the status only.
    package var shownParts: KeyValuePairs<String, Any> { ["statusCode": statusCode] }
}
