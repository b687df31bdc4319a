// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Who may use which connection where programs choose client certificates, on one transport with one pool.
@Suite(.timeLimit(.minutes(1))) struct CertificateChooserTests {
    private let authority: CertificateAuthority
    private let clients: CertificateAuthority
    private let server: LoopbackServer
    private let numbers = Log<Int>()

    init() throws {
        authority = try CertificateAuthority()
        clients = try CertificateAuthority(name: "Clients")
        var tls = ServerTLS(try authority.issue(), clientAuthority: clients)
        tls.requiresClientCertificate = false
        server = try LoopbackServer(tls: tls) { [numbers] _, connection in
            numbers.append(connection.number)
            return .ok(connection.tls?.clientName ?? "none")
        }
    }

    /// A program that trusts every host.
    private final class Program: Sendable {
        let choices = CertificateChoices()
        let asked = Log<CertificateRequest>()
        private let token = String.makeToken()
        private let answer: CertificateChooser.Answer

        init(_ answer: CertificateChooser.Answer) { self.answer = answer }

        /// As Core makes it: new objects for each exchange.
        func options(port: Int, version: Int = 0) -> TransferOptions {
            let chooser = CertificateChooser(choices, version: version) { [self] request, completion in
                asked.append(request)
                completion(answer)
            }
            var options = CertificateChooserTests.plain
            options.tls.trust = TrustRequirement(
                .evaluator(TrustEvaluator(scope: self, token: token) { _, completion in completion(true) }), policy: "test",
                host: "localhost",
                port: port,
                chooser: chooser)
            return options
        }
    }

    private static var plain: TransferOptions {
        var options = TransferOptions()
        options.proxy = .none
        options.tls.verifiesServer = false
        return options
    }

    private func certificate(_ name: String) throws -> ClientCertificate {
        let identity = try clients.issue(name, usage: .client)
        return .pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
    }

    private func get(_ transport: CurlTransport, _ options: TransferOptions) async -> String {
        let end = await transport.run(TransferRequest(url: server.url("/"), options: options))
        return end.error.map { "\($0)" } ?? String(decoding: end.body, as: UTF8.self)
    }

    // U2.8
    @Test func `a connection with a certificate is used for requests of the program that has chosen it only`() async throws {
        let transport = CurlTransport()
        let (ada, other) = (try certificate("Ada"), try certificate("Ada"))
        let programs = [
            Program(.certificate(ada)), Program(.certificate(try certificate("Bob"))), Program(.none), Program(.certificate(ada)),
        ]
        let names = ["Ada", "Bob", "none", "Ada"]
        for _ in 0..<3 {
            for (program, name) in zip(programs, names) { #expect(await get(transport, program.options(port: server.port)) == name) }
            #expect(await get(transport, Self.plain) == "none")
        }
        #expect(programs.map(\.asked.count) == [1, 1, 1, 1])
        #expect(ada != other)
        // The first and the last have chosen the same certificate, and have connections of their own all the same; what was made without one is
        // shared, once it was chosen so.
        let users = zip(numbers.elements, (0..<3).flatMap { _ in [0, 1, 2, 3, 2] })
        for (number, user) in users { #expect(users.allSatisfy { $0.0 != number || $0.1 == user }, "\(numbers.elements)") }
    }

    // U2.8
    @Test func `a connection that another has made without a certificate does not keep a program from being asked`() async throws {
        let transport = CurlTransport()
        #expect(await get(transport, Self.plain) == "none")
        let program = Program(.certificate(try certificate("Ada")))
        #expect(await get(transport, program.options(port: server.port)) == "Ada")
        #expect(program.asked.elements.map(\.port) == [server.port])
        // Another closure is asked as well, although the host is trusted already, and the connection could be used. That of a resumed session
        // has no certificates, and no request for one.
        for (version, options) in [(1, Self.plain), (2, Program(.none).options(port: server.port))] {
            #expect(await get(transport, options) == "none")
            let value = await get(transport, program.options(port: server.port, version: version))
            #expect(value == "Ada")
            #expect(program.asked.count == version + 1)
        }
    }

    // U2.8
    @Test func `responses are shared by the certificate that was chosen`() throws {
        let program = Program(.none)
        let place = CertificateChoices.Place(host: "localhost", port: server.port, version: 0)
        func partition() -> String { TransferRequest(url: server.url("/"), options: program.options(port: server.port)).partition }
        let undecided = partition()
        program.choices.choose(nil, at: place)
        #expect(partition() == undecided)
        let partitions = try ["Ada", "Bob"].map { name in
            program.choices.choose(try certificate(name), at: place)
            #expect(partition() == partition())
            return partition()
        }
        #expect(Set(partitions + [undecided]).count == 3)
    }

    // U2.8
    @Test func `no callback is set where nothing chooses, or has nothing to choose`() throws {
        let mailbox = Mailbox(configuration: TransportConfiguration(), makePoller: { try CountingPoller() })
        let loop = try #require(EventLoopThread(configuration: TransportConfiguration(), mailbox: mailbox, poller: CountingPoller()))
        let group = ConnectionGroup(number: 0, configuration: TransportConfiguration())
        defer { withExtendedLifetime(group) { loop.stopAll() } }
        let member = try #require(Transfer(loop: loop, group: group))
        let url = server.url("/")
        #expect(!PresentationGuard.isNeeded(for: member, Self.plain.tls, url))
        var options = Program(.none).options(port: server.port).tls
        #expect(PresentationGuard.isNeeded(for: member, options, url))
        options.trust = TrustRequirement(
            .evaluator(TrustEvaluator(scope: numbers) { _, _ in }), policy: "test", host: "localhost", port: server.port)
        #expect(!PresentationGuard.isNeeded(for: member, options, url))
    }

    @Test func `choices are remembered by origin and version until they fail`() throws {
        let choices = CertificateChoices()
        let place = CertificateChoices.Place(host: "a", port: 443, version: 0)
        #expect(choices.choice(at: place) == nil)
        let certificate = try certificate("Ada")
        choices.choose(certificate, at: place)
        let first = try #require(choices.choice(at: place))
        #expect(first.certificate == certificate)
        for other in [("b", 443, 0), ("a", 444, 0), ("a", 443, 1)] {
            #expect(choices.choice(at: CertificateChoices.Place(host: other.0, port: other.1, version: other.2)) == nil)
        }
        choices.failed(first, at: place)
        #expect(choices.choice(at: place) == nil && choices.failureCount(at: place) == 1)
        choices.choose(nil, at: place)
        // A failure of an earlier choice says nothing about the present one.
        choices.failed(first, at: place)
        let second = try #require(choices.choice(at: place))
        #expect(second.certificate == nil && choices.failureCount(at: place) == 1)
        choices.failed(second, at: place)
        #expect(choices.choice(at: place) == nil && choices.failureCount(at: place) == 1)
        for number in 0..<2_000 { choices.choose(nil, at: CertificateChoices.Place(host: "\(number)", port: 443, version: 0)) }
        #expect(choices.choice(at: CertificateChoices.Place(host: "1999", port: 443, version: 0)) != nil)
        #expect(choices.choice(at: CertificateChoices.Place(host: "0", port: 443, version: 0)) == nil)
    }
}
