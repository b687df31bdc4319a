// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A path of certificates under judgement, with all on which the verdict depends.
struct TrustQuestion: Sendable, Hashable {
    let requirement: TrustRequirement
    let trust: ServerTrust
}

/// Knows which connections, and which certificates, were found good, and under which requirement.
///
/// libcurl uses a connection again for whatever asks for the same by its own options, and of requirements it knows nothing. Event-loop
/// thread only.
struct TrustRegister {
    /// What is known of a connection.
    enum Verdict {
        case trusted
        case refused(String)
        /// Somebody has to be asked.
        case undecided(TrustQuestion)
    }

    /// More certificates than these are not remembered: a host that shows a new one each time must not fill the memory.
    private static let largestMemory = 1000

    private var connections: [Int32: TrustRequirement] = [:]
    private var accepted: Set<TrustQuestion> = []
    /// Transfers and streams that wait for a verdict, by number.
    private var waiting: [TrustQuestion: [Int]] = [:]

    /// Judges the connection that a request is about to go out on.
    ///
    /// - Parameter socket: the connection's; −1 if it is not known, which has the certificates looked at each time.
    mutating func judge(_ handle: EasyHandle, socket: Int32, by requirement: TrustRequirement, _ options: TLSOptions) -> Verdict {
        guard requirement.needsCertificates else { return .trusted }
        if socket >= 0, let known = connections[socket], known == requirement { return .trusted }
        if case .never(let reason) = requirement.rule { return .refused(requirement.message(reason)) }
        guard let trust = handle.serverTrust(for: requirement, options) else {
            return .refused(requirement.message("the connection shows no certificates"))
        }
        if let verdict = verdict(on: trust, by: requirement) { return verdict }
        if socket >= 0 { connections[socket] = requirement }
        return .trusted
    }

    /// What is to be done about a trust object; `nil` for nothing.
    private func verdict(on trust: ServerTrust, by requirement: TrustRequirement) -> Verdict? {
        switch requirement.rule {
        case .none: return nil
        case .certificate(let pins):
            if trust.certificates.contains(where: { pins.contains($0) }) { return nil }
            return .refused(requirement.message("no certificate of \(trust) is pinned"))
        case .publicKey(let pins):
            if trust.certificates.contains(where: { pins.contains($0.publicKey) }) { return nil }
            return .refused(requirement.message("no public key of \(trust) is pinned"))
        case .judge:
            let question = TrustQuestion(requirement: requirement, trust: trust)
            return accepted.contains(question) ? nil : .undecided(question)
        case .never(let reason):
            return .refused(requirement.message(reason))
        }
    }

    /// Notes who waits for a verdict; `true` if nobody has asked for it yet.
    mutating func wait(for question: TrustQuestion, _ id: Int) -> Bool {
        waiting[question, default: []].append(id)
        return waiting[question]?.count == 1
    }

    /// Notes a verdict; who waits for it.
    mutating func decided(_ question: TrustQuestion, isTrusted: Bool) -> [Int] {
        if isTrusted {
            if accepted.count >= Self.largestMemory { accepted = [] }
            accepted.insert(question)
        }
        return waiting.removeValue(forKey: question) ?? []
    }

    /// A connection is going to be closed.
    mutating func forget(_ socket: Int32) {
        if !connections.isEmpty { connections[socket] = nil }
    }
}

extension TrustRequirement {
    /// Which policy refused what, and why.
    func message(_ reason: String) -> String { "\(policy) refused \(host): \(reason)" }
}

extension TrustQuestion {
    /// What is said when the verdict is no.
    var refusal: String { requirement.message("it does not trust \(trust)") }
}

extension EasyHandle {
    /// What the host of the connection in use has shown; `nil` if that can't be had.
    fileprivate func serverTrust(for requirement: TrustRequirement, _ options: TLSOptions) -> ServerTrust? {
        let (sent, path) = (CertificateList(), CertificateList())
        guard ccurlew_tls_sent_certificates(raw, CertificateList.add, sent.context), let sent = sent.certificates, !sent.isEmpty,
            ccurlew_tls_path(raw, CertificateList.add, path.context), let path = path.certificates, path.first == sent.first
        else { return nil }
        return ServerTrust(host: requirement.host, port: requirement.port, sent: sent, path: path, options: options)
    }
}
