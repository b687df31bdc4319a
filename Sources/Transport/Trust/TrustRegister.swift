// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A question about a host: whether its certificates are accepted, or which client certificate it gets; with everything that the decision
/// depends on.
struct TrustQuestion: Sendable, Hashable {
    enum Answer: Sendable {
        case trust(Bool)
        case certificate(CertificateChooser.Answer)
    }

    let requirement: TrustRequirement
    /// The certificate path to be decided on; `nil` for the question of the client certificate.
    let trust: ServerTrust?
    /// The issuers that the host has named for that; not compared.
    let issuers: [Data]
    /// The number of the connection's group: a decision holds for the session that has made it.
    let group: Int

    init(requirement: TrustRequirement, trust: ServerTrust, group: Int = 0) {
        self.requirement = requirement
        self.trust = trust
        self.group = group
        issuers = []
    }

    init(requirement: TrustRequirement, issuers: [Data], group: Int) {
        self.requirement = requirement
        self.issuers = issuers
        self.group = group
        trust = nil
    }

    static func == (lhs: TrustQuestion, rhs: TrustQuestion) -> Bool {
        guard lhs.group == rhs.group else { return false }
        guard lhs.trust == nil, rhs.trust == nil else { return lhs.requirement == rhs.requirement && lhs.trust == rhs.trust }
        // How the host's certificates are evaluated does not count.
        let (lhs, rhs) = (lhs.requirement, rhs.requirement)
        return lhs.host == rhs.host && lhs.port == rhs.port && lhs.chooser == rhs.chooser
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(requirement.host)
        hasher.combine(requirement.port)
        hasher.combine(trust)
    }

    /// An equal one without what is to be called, for a memory of answers.
    fileprivate var remembered: TrustQuestion {
        trust.map { TrustQuestion(requirement: requirement.remembered, trust: $0, group: group) } ?? self
    }
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
    private static let mostAccepted = 1000

    /// How long an accepted path is not evaluated again.
    private static let acceptedFor: TimeInterval = 86_400

    private var connections: [Int32: TrustRequirement] = [:]
    /// Until when a path is accepted.
    private var accepted: [TrustQuestion: Date] = [:]
    private var pending: [TrustQuestion: Pending] = [:]
    private var lastNumber = 0

    /// A question that the evaluator has been asked.
    private struct Pending {
        /// The number with which it was asked first. Answers to lower ones are to a question that was dropped.
        let firstNumber: Int
        /// The transfer or stream for which it was asked last; `nil` once that has ended.
        var asker: Int?
        /// The numbers of the transfers and streams that wait for the answer.
        var waiters: [Int]
    }

    /// Whether the request that a connection was accepted for last had the same chooser of certificates.
    func belongs(_ socket: Int32, to chooser: CertificateChooser) -> Bool { socket >= 0 && connections[socket]?.chooser == chooser }

    /// Decides on the connection that a request is about to use.
    ///
    /// - Parameters:
    ///   - session: OpenSSL's object for it.
    ///   - socket: the connection's socket; −1 if it is unknown, in which case the certificates are evaluated each time.
    mutating func evaluate(
        _ session: UnsafeRawPointer?, socket: Int32, for requirement: TrustRequirement, _ options: TLSOptions, group: Int = 0,
        now: Date = Date()
    ) -> Decision {
        guard requirement.needsCertificates else { return .trusted }
        if socket >= 0, let known = connections[socket], known == requirement { return .trusted }
        if case .refuse(let reason) = requirement.rule { return .refused(requirement.message(reason)) }
        guard let trust = requirement.serverTrust(of: session, options) else {
            return .refused(requirement.message("the connection has no certificates"))
        }
        if let decision = decision(on: trust, by: requirement, group: group, now: now) { return decision }
        if socket >= 0 { connections[socket] = requirement }
        return .trusted
    }

    /// The decision on a trust object; `nil` to accept it.
    func decision(on trust: ServerTrust, by requirement: TrustRequirement, group: Int = 0, now: Date) -> Decision? {
        guard case .evaluator = requirement.rule else { return requirement.refusal(of: trust).map { .refused($0) } }
        let question = TrustQuestion(requirement: requirement, trust: trust, group: group)
        return accepted[question].map { $0 > now } == true ? nil : .undecided(question)
    }

    /// Adds a transfer or stream that waits for a decision. Returns the number with which the evaluator has to be asked; `nil` if it has
    /// been asked for one that still waits.
    mutating func wait(for question: TrustQuestion, _ id: Int) -> Int? {
        let isAsked = pending[question]?.asker != nil
        if !isAsked { lastNumber += 1 }
        var entry = pending[question] ?? Pending(firstNumber: lastNumber, asker: nil, waiters: [])
        entry.waiters.append(id)
        if !isAsked { entry.asker = id }
        pending[question] = entry
        return isAsked ? nil : lastNumber
    }

    /// A transfer or stream that waited has ended. If it was the one that asked, the next one asks again, so that an answer that never comes
    /// does not block the host; a question for which none waits is dropped.
    mutating func withdraw(_ id: Int, from question: TrustQuestion) {
        guard var entry = pending[question] else { return }
        entry.waiters.removeAll { $0 == id }
        if entry.asker == id { entry.asker = nil }
        pending[question] = entry.waiters.isEmpty ? nil : entry
    }

    /// Records a decision. Returns the numbers of the transfers and streams that wait for it; none for a question that was dropped.
    mutating func decided(_ question: TrustQuestion, number: Int, isTrusted: Bool, now: Date = Date()) -> [Int] {
        guard let asked = pending[question], number >= asked.firstNumber else { return [] }
        pending[question] = nil
        if isTrusted, let trust = question.trust {
            if accepted.count >= Self.mostAccepted { accepted = [:] }
            let latest = now + Self.acceptedFor
            // What accepts a certificate that has expired knows that.
            let end = trust.certificates.first?.notAfter ?? latest
            accepted[question.remembered] = end > now ? min(end, latest) : latest
        }
        return asked.waiters
    }

    /// A group has ended, and with it its connections.
    mutating func forget(group: Int) {
        accepted = accepted.filter { $0.key.group != group }
        pending = pending.filter { $0.key.group != group }
    }

    /// A connection is about to be closed.
    mutating func forget(_ socket: Int32) {
        if !connections.isEmpty { connections[socket] = nil }
    }
}

extension TrustRequirement {
    /// The certificates of a connection; `nil` if they are not available.
    fileprivate func serverTrust(of session: UnsafeRawPointer?, _ options: TLSOptions) -> ServerTrust? {
        let (sent, path) = (CertificateList(), CertificateList())
        guard ccurlew_tls_sent_certificates(session, CertificateList.add, sent.context), let sent = sent.certificates, !sent.isEmpty,
            ccurlew_tls_path(session, CertificateList.add, path.context), let path = path.certificates, path.first == sent.first
        else { return nil }
        return ServerTrust(host: host, port: port, sent: sent, path: path, options: options)
    }
}

extension TrustQuestion {
    /// The most questions for one connection: a host may have several certificates, but not new ones without end.
    static let limit = 10

    /// The message if there were more.
    var endlessness: String { requirement.message("it has sent other certificates each of \(Self.limit) times") }

    /// The message for a refusal by the evaluator.
    var refusal: String { requirement.message("it does not trust \(trust.map { "\($0)" } ?? requirement.host)") }

    /// Whether the client certificate was chosen since the question came up.
    var isAnswered: Bool {
        guard trust == nil, let chooser = requirement.chooser else { return false }
        return chooser.choices.choice(at: requirement.place(of: chooser)) != nil
    }

    /// The error of those that wait, after an answer; `nil` if they continue.
    func error(after answer: Answer, _ failure: (TransferFailure.Kind, String) -> CurlewError) -> CurlewError? {
        switch answer {
        case .trust(true), .certificate(.certificate), .certificate(.none), .certificate(.notAsked): nil
        case .trust(false): failure(.serverCertificate, refusal)
        case .certificate(.cancel): .cancelled
        }
    }
}
