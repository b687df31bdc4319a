// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// Server trust policies and challenges, as programs for Alamofire 4 use them.
@Suite(.timeLimit(.minutes(2)), .enabled(if: Servers.hasNginx, "needs the nginx of scripts/servers"))
struct ServerTrustTests {
    private func code(of manager: SessionManager) async throws -> URLError.Code? {
        // The system does not trust its authority.
        let server = try Servers.nginx().tls
        let response = await manager.request(server + "/1k.bin").validate().plainResponse()
        #expect(response.error == nil || response.error is URLError)
        return (response.error as? URLError)?.code
    }

    private func code(_ policy: ServerTrustPolicy?) async throws -> URLError.Code? {
        let policies = policy.map { ServerTrustPolicyManager(policies: ["localhost": $0]) }
        return try await code(of: SessionManager(serverTrustPolicyManager: policies))
    }

    @Test("a server rejected by a policy cancels the request; an untrusted one is a trust error") func refusedByPolicy() async throws {
        let policies: [ServerTrustPolicy] = [
            .performDefaultEvaluation(validateHost: true),
            .performRevokedEvaluation(validateHost: true, revocationFlags: kSecRevocationUseAnyAvailableMethod),
            .pinCertificates(certificates: [], validateCertificateChain: true, validateHost: true),
            .pinPublicKeys(publicKeys: [], validateCertificateChain: false, validateHost: true),
            .customEvaluation { _, _ in false },
        ]
        for policy in policies { #expect(try await code(policy) == .cancelled) }
        #expect(try await code(nil) == .serverCertificateUntrusted)
        #expect(try await code(.disableEvaluation) == nil)
    }

    @Test("a raw stream whose server a policy rejects is cancelled, too") func stream() async throws {
        let server = try #require(URL(string: Servers.nginx().tls))
        let manager = SessionManager(
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": .customEvaluation { _, _ in false }]))
        let stream = manager.stream(withSecureHostName: "localhost", port: try #require(server.port))
        let error = await outcome { (done: @escaping @Sendable (Bool) -> Void) in
            Task {
                _ = try? await stream.write(Data("GET".utf8))
                // Runs when the request has finished.
                stream.delegate.queue.addOperation { done((stream.delegate.error as? URLError)?.code == .cancelled) }
            }
        }
        #expect(error)
    }

    @Test("sessionDidReceiveChallenge is called, and decides as in Alamofire", arguments: [true, false])
    func challenge(completes: Bool) async throws {
        let methods = Methods()
        /// As such programs write it.
        @Sendable func answer(_ challenge: URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            methods.add(challenge.protectionSpace.authenticationMethod)
            if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
                let trust = challenge.protectionSpace.serverTrust, challenge.protectionSpace.host == "localhost"
            {
                return (.useCredential, URLCredential(trust: trust))
            }
            return (.cancelAuthenticationChallenge, nil)
        }
        let manager = SessionManager()
        if completes {
            manager.delegate.sessionDidReceiveChallengeWithCompletion = { _, challenge, completion in
                let (disposition, credential) = answer(challenge)
                completion(disposition, credential)
            }
        } else {
            manager.delegate.sessionDidReceiveChallenge = { _, challenge in answer(challenge) }
        }
        #expect(try await code(of: manager) == nil)
        #expect(methods.all == [NSURLAuthenticationMethodServerTrust])

        let refusing = SessionManager()
        refusing.delegate.sessionDidReceiveChallenge = { _, _ in (.cancelAuthenticationChallenge, nil) }
        #expect(try await code(of: refusing) == .cancelled)
    }

    private final class Methods: @unchecked Sendable {  // behind a lock
        private let lock = NSLock()
        private var methods: [String] = []

        var all: [String] { lock.withLock { methods } }
        func add(_ method: String) { lock.withLock { methods.append(method) } }
    }

    @Test("the Security framework's flags are those of policies") func revocationFlags() {
        #expect(kSecRevocationUseAnyAvailableMethod == .anyAvailableMethod && kSecRevocationCRLMethod == .revocationLists)
        #expect(kSecRevocationOCSPMethod | kSecRevocationRequirePositiveResponse == .stapledResponse)
    }
}
