// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// What the user of a device without a browser is to do on another one (RFC 8628).
///
/// ```swift
/// let device = try await client.deviceAuthorization(scope: ["playlists"])
/// print("Enter \(device.userCode) at \(device.verificationURL)")
/// let tokens = try await client.tokens(for: device)
/// ```
public struct OAuthDeviceAuthorization: Sendable {
    /// What the user enters.
    public let userCode: String
    /// Where the user enters it; short.
    public let verificationURL: String
    /// The same with the code in it, for a QR code; `nil` if the server has none.
    public let completeVerificationURL: String?
    /// How long the codes are valid.
    public let lifetime: Duration
    /// The shortest pause between two requests for tokens.
    public let interval: Duration
    let deviceCode: String
    let resources: [String]
}

extension OAuthDeviceAuthorization: CustomStringConvertible, CustomReflectable {
    /// The URL; never a code.
    public var description: String { "OAuthDeviceAuthorization(\(Redaction.current.url(verificationURL)))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}

extension OAuthClient {
    /// Asks for a code by which the user of a device without a browser signs in on another one (RFC 8628, section 3.1).
    ///
    /// - Parameters:
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which access tokens are to be (RFC 8707).
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer.
    public func deviceAuthorization(scope: [String] = [], resources: [String] = []) async throws -> OAuthDeviceAuthorization {
        struct Members: Decodable {
            let device_code: String
            let user_code: String
            let verification_uri: String
            let verification_uri_complete: String?
            let expires_in: Double
            let interval: Double?
        }
        var form: OAuthForm = ["client_id": id]
        form.append(scope: scope, resources: resources)
        let response = try await post(form, to: .deviceAuthorization)
        guard response.status == 200 else { throw response.error }
        guard let members = try? JSONDecoder().decode(Members.self, from: response.body) else {
            throw OAuthError.unexpectedResponse(statusCode: response.status, reason: "the body has no codes")
        }
        return OAuthDeviceAuthorization(
            userCode: members.user_code, verificationURL: members.verification_uri,
            completeVerificationURL: members.verification_uri_complete, lifetime: .seconds(min(max(members.expires_in, 0), 86_400)),
            interval: .seconds(min(max(members.interval ?? 5, 1), 3600)), deviceCode: members.device_code, resources: resources)
    }

    /// Waits until the user has decided, and returns the tokens (RFC 8628, section 3.4). To be cancelled with the task.
    ///
    /// Asks in the server's interval, by five seconds longer each time the server says `slow_down`, and twice as long after a failed
    /// transfer. Waits on the clock of the client's session.
    ///
    /// - Throws: ``OAuthError/refused(_:)`` with ``OAuthRefusal/Code/accessDenied`` or ``OAuthRefusal/Code/expiredToken``, among others.
    public func tokens(for device: OAuthDeviceAuthorization) async throws -> OAuthTokens {
        var form: OAuthForm = ["grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device.deviceCode]
        form.append(scope: [], resources: device.resources)
        var (interval, elapsed) = (device.interval, Duration.zero)
        while true {
            elapsed += interval
            guard elapsed <= device.lifetime else { throw OAuthError.refused(OAuthRefusal(.expiredToken)) }
            try await clock.sleep(for: interval)
            do {
                return try await tokens(form)
            } catch OAuthError.refused(let refusal) where refusal.code == .authorizationPending {
                continue
            } catch OAuthError.refused(let refusal) where refusal.code == .slowDown {
                interval += .seconds(5)
            } catch CurlewError.transferFailed {
                interval *= 2
            }
        }
    }

    /// The clock of the session.
    private var clock: any Clock<Duration> { manager.session.configuration.clock as? any Clock<Duration> ?? ContinuousClock() }
}
