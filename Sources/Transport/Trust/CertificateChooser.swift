// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A host's request for a client certificate.
package struct CertificateRequest: Sendable {
    /// The host and port to which the connection is made.
    package let host: String
    package let port: Int
    /// The distinguished names of the issuers that the host has named, in DER (RFC 8446, section 4.2.4; RFC 5246, section 7.4.4); empty if
    /// it accepts those of any.
    package let issuers: [Data]
    /// How many certificates were chosen for the host before, and refused.
    package let failureCount: Int
}

/// Chooses the client certificate for a host that requests one, off the event loop's thread; part of a ``TrustRequirement``.
///
/// Meanwhile the transfer keeps its slot, without a connection, as for a ``TrustEvaluator``. It is asked when the host has requested a
/// certificate, and the host's own were accepted; not if the transfer's options have a certificate for the host.
package final class CertificateChooser: Sendable, Hashable {
    package enum Answer: Sendable {
        case certificate(ClientCertificate)
        /// The handshake goes without one, which the host may accept.
        case none
        /// All requests that wait for the answer are cancelled.
        case cancel
        /// What was to be asked has ended: those that still wait ask again.
        case notAsked
    }

    /// Choosers with the same object and version are considered equal; what one has chosen, another does not choose again.
    let choices: CertificateChoices
    let version: Int
    let choose: @Sendable (CertificateRequest, _ completion: @escaping @Sendable (Answer) -> Void) -> Void

    /// - Parameters:
    ///   - choices: where its answers are remembered.
    ///   - version: changes with what chooses.
    package init(
        _ choices: CertificateChoices, version: Int = 0,
        choose: @escaping @Sendable (CertificateRequest, _ completion: @escaping @Sendable (Answer) -> Void) -> Void
    ) {
        self.choices = choices
        self.version = version
        self.choose = choose
    }

    package static func == (lhs: CertificateChooser, rhs: CertificateChooser) -> Bool {
        lhs.choices === rhs.choices && lhs.version == rhs.version
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(choices)) }
}

/// The client certificates that were chosen, by origin.
///
/// Belongs to what chooses, so that a choice is known to nothing else, and ends with it: a session, or the closures of requests. Thread-safe.
package final class CertificateChoices: Sendable {
    /// A choice, until it is forgotten.
    final class Choice: Sendable {
        /// `nil` for a handshake without one.
        let certificate: ClientCertificate?

        fileprivate init(_ certificate: ClientCertificate?) { self.certificate = certificate }
    }

    /// An origin, and the version of what chooses.
    struct Place: Sendable, Hashable {
        let host: String
        let port: Int
        let version: Int
    }

    private struct Known {
        var choice: Choice?
        var failureCount = 0
    }

    /// The number of origins to remember: limited, because redirects may lead to a new one each time.
    private static let largestMemory = 1000

    private let state = Lock([Place: Known]())

    package init() {}

    func choice(at place: Place) -> Choice? { state.withLock { $0[place]?.choice } }

    func failureCount(at place: Place) -> Int { state.withLock { $0[place]?.failureCount ?? 0 } }

    func choose(_ certificate: ClientCertificate?, at place: Place) {
        // Released after unlocking.
        let previous = state.withLock { known in
            let all = known
            if known.count >= Self.largestMemory, known[place] == nil { known = [:] }
            known[place, default: Known()].choice = Choice(certificate)
            return all
        }
        withExtendedLifetime(previous) {}
    }

    /// Forgets a choice with which a connection could not be made, so that the next one asks again.
    func failed(_ choice: Choice, at place: Place) {
        state.withLock { known in
            guard known[place]?.choice === choice else { return }
            known[place]?.choice = nil
            if choice.certificate != nil { known[place]?.failureCount += 1 }
        }
    }
}

// MARK: - For transfers and streams

extension TLSOptions {
    /// What chooses the client certificate for a URL's host, if the options have none for it.
    func chooser(for url: String) -> CertificateChooser? {
        guard let chooser = trust?.chooser, clientCertificate?.isFor(url) != true else { return nil }
        return chooser
    }
}

extension TrustRequirement {
    /// Where the chooser's answer for the host is remembered.
    func place(of chooser: CertificateChooser) -> CertificateChoices.Place {
        CertificateChoices.Place(host: host, port: port, version: chooser.version)
    }
}

extension MultiMember {
    /// Notes the choice for its host, if there is one, and returns its certificate. Called when its connection is configured.
    final func chosenCertificate(_ tls: TLSOptions, _ url: String) -> ClientCertificate? {
        guard let chooser = tls.chooser(for: url), let requirement = tls.trust else { return nil }
        let chosen = chooser.choices.choice(at: requirement.place(of: chooser))
        choice = chosen
        return chosen?.certificate
    }

    /// The question which certificate the host of a TLS session gets; `nil` if that is not to be asked, or was decided when the connection was
    /// configured.
    final func certificateQuestion(on session: UnsafeRawPointer?) -> TrustQuestion? {
        let tls = tls
        guard let requirement = tls.trust, tls.chooser(for: url) != nil, choice == nil else { return nil }
        let issuers = IssuerList()
        ccurlew_tls_requested_issuers(session, IssuerList.add, issuers.context)
        return TrustQuestion(requirement: requirement, issuers: issuers.names, group: group.number)
    }

    /// Has the program choose again if its choice is the reason why no connection could be made.
    ///
    /// - Parameter isRequested: whether the host has requested a certificate, and may have ended the connection because of it.
    final func noteFailure(_ kind: TransferFailure.Kind, isRequested: Bool) {
        let tls = tls
        guard let requirement = tls.trust, let chooser = tls.chooser(for: url), let choice else { return }
        switch kind {
        case .clientCertificate: break
        // Before TLS 1.3, a host may refuse the handshake without another reason; later, its alert may get lost with the connection.
        case .secureConnection, .connectionLost: guard isRequested else { return }
        default: return
        }
        chooser.choices.failed(choice, at: requirement.place(of: chooser))
    }
}

/// The names that a host sends with its request for a certificate.
private final class IssuerList {
    private(set) var names: [Data] = []

    /// The context to pass to C along with ``add``; unretained, so the list must outlive the call.
    var context: UnsafeMutableRawPointer { borrowedPointer(to: self) }

    static let add: ccurlew_certificate_callback = { context, bytes, length in
        guard let context, let bytes else { return }
        context.borrow(IssuerList.self) { $0.names.append(Data(UnsafeBufferPointer(start: bytes, count: length))) }
    }
}
