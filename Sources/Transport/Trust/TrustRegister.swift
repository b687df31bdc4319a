// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A certificate path to be decided on, with everything that the decision depends on.
struct TrustQuestion: Sendable, Hashable {
    let requirement: TrustRequirement
    let trust: ServerTrust
}

/// Records which connections, and which certificates, were accepted under which requirement.
///
/// libcurl reuses a connection for every request with the same libcurl options, and knows nothing of requirements. For the event loop's
/// thread only.
struct TrustRegister {
    /// The decision on a connection.
    enum Decision {
        case trusted
        case refused(String)
        /// The requirement's evaluator has to be asked.
        case undecided(TrustQuestion)
    }

    /// The number of accepted certificates to remember: limited, because a host may send a new certificate each time.
    private static let largestMemory = 1000

    private var connections: [Int32: TrustRequirement] = [:]
    private var accepted: Set<TrustQuestion> = []
    /// The numbers of the transfers and streams that wait for a decision.
    private var waiting: [TrustQuestion: [Int]] = [:]

    /// Decides on the connection that a request is about to use.
    ///
    /// - Parameter socket: the connection's socket; −1 if it is unknown, in which case the certificates are evaluated each time.
    mutating func evaluate(_ handle: EasyHandle, socket: Int32, for requirement: TrustRequirement, _ options: TLSOptions) -> Decision {
        guard requirement.needsCertificates else { return .trusted }
        if socket >= 0, let known = connections[socket], known == requirement { return .trusted }
        if case .refuse(let reason) = requirement.rule { return .refused(requirement.message(reason)) }
        guard let trust = handle.serverTrust(for: requirement, options) else {
            return .refused(requirement.message("the connection has no certificates"))
        }
        if let decision = decision(on: trust, by: requirement) { return decision }
        if socket >= 0 { connections[socket] = requirement }
        return .trusted
    }

    /// The decision on a trust object; `nil` to accept it.
    private func decision(on trust: ServerTrust, by requirement: TrustRequirement) -> Decision? {
        switch requirement.rule {
        case .none: return nil
        case .certificate(let pins):
            if trust.certificates.contains(where: { pins.contains($0) }) { return nil }
            return .refused(requirement.message("no certificate of \(trust) is pinned"))
        case .publicKey(let pins):
            if trust.certificates.contains(where: { pins.contains($0.publicKey) }) { return nil }
            return .refused(requirement.message("no public key of \(trust) is pinned"))
        case .evaluator:
            let question = TrustQuestion(requirement: requirement, trust: trust)
            return accepted.contains(question) ? nil : .undecided(question)
        case .refuse(let reason):
            return .refused(requirement.message(reason))
        }
    }

    /// Adds a transfer or stream that waits for a decision; `true` if it is the first, so that the evaluator has to be asked.
    mutating func wait(for question: TrustQuestion, _ id: Int) -> Bool {
        waiting[question, default: []].append(id)
        return waiting[question]?.count == 1
    }

    /// Records a decision. Returns the numbers of the transfers and streams that wait for it.
    mutating func decided(_ question: TrustQuestion, isTrusted: Bool) -> [Int] {
        if isTrusted {
            if accepted.count >= Self.largestMemory { accepted = [] }
            accepted.insert(question)
        }
        return waiting.removeValue(forKey: question) ?? []
    }

    /// A connection is about to be closed.
    mutating func forget(_ socket: Int32) {
        if !connections.isEmpty { connections[socket] = nil }
    }
}

extension TrustRequirement {
    /// The message for a refusal: policy, host and reason.
    func message(_ reason: String) -> String { "\(policy) refused \(host): \(reason)" }
}

extension TrustQuestion {
    /// The message for a refusal by the evaluator.
    var refusal: String { requirement.message("it does not trust \(trust)") }
}

extension EasyHandle {
    /// The certificates of the connection in use; `nil` if they are not available.
    fileprivate func serverTrust(for requirement: TrustRequirement, _ options: TLSOptions) -> ServerTrust? {
        let (sent, path) = (CertificateList(), CertificateList())
        guard ccurlew_tls_sent_certificates(raw, CertificateList.add, sent.context), let sent = sent.certificates, !sent.isEmpty,
            ccurlew_tls_path(raw, CertificateList.add, path.context), let path = path.certificates, path.first == sent.first
        else { return nil }
        return ServerTrust(host: requirement.host, port: requirement.port, sent: sent, path: path, options: options)
    }
}
