// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct TrustRegisterTests {
    private final class Scope: Sendable {}

    /// Expectations can't change a value.
    private final class Register {
        private var value = TrustRegister()

        func wait(for question: TrustQuestion, _ id: Int) -> Int? { value.wait(for: question, id) }

        func withdraw(_ id: Int, from question: TrustQuestion) { value.withdraw(id, from: question) }

        func decided(_ question: TrustQuestion, number: Int, isTrusted: Bool, now: Date = Date()) -> [Int] {
            value.decided(question, number: number, isTrusted: isTrusted, now: now)
        }

        func accepts(_ question: TrustQuestion, at now: Date) -> Bool {
            question.trust.map { value.decision(on: $0, by: question.requirement, now: now) == nil } ?? false
        }
    }

    private let scope = Scope()
    private let leaf: Certificate
    private let expired: Certificate

    init() throws {
        leaf = try #require(Certificate(pem: Data(TestCertificates.leaf.utf8)))
        expired = try #require(Certificate(pem: Data(TestCertificates.expired.utf8)))
    }

    private func question(_ certificate: Certificate? = nil, version: Int = 0) -> TrustQuestion {
        let evaluator = TrustEvaluator(scope: scope, version: version, token: "t") { _, _ in }
        return TrustQuestion(
            requirement: TrustRequirement(.evaluator(evaluator), policy: "p", host: "h", port: 443),
            trust: ServerTrust(host: "h", certificates: [certificate ?? leaf]))
    }

    private func isAccepted(_ question: TrustQuestion, in register: Register, at now: Date) -> Bool {
        register.accepts(question, at: now)
    }

    @Test("one question is asked for all that wait, and its answer is theirs") func shared() throws {
        let register = Register()
        let number = try #require(register.wait(for: question(), 1))
        #expect(register.wait(for: question(), 2) == nil)
        #expect(register.decided(question(), number: number, isTrusted: true) == [1, 2])
        #expect(register.decided(question(), number: number, isTrusted: true).isEmpty)
    }

    @Test("a question for which none waits is dropped: the next one asks, and the late answer has no effect") func dropped() throws {
        let register = Register()
        let first = try #require(register.wait(for: question(), 1))
        register.withdraw(1, from: question())
        #expect(register.decided(question(), number: first, isTrusted: true).isEmpty)
        #expect(!isAccepted(question(), in: register, at: leaf.notBefore))
        let second = try #require(register.wait(for: question(), 2))
        #expect(register.decided(question(), number: first, isTrusted: false).isEmpty)
        #expect(register.decided(question(), number: second, isTrusted: true) == [2])
    }

    @Test("once the one that asked has ended, the next asks again, although others wait, and either answer is that of all")
    func askedAgain() throws {
        for answersFirst in [true, false] {
            let register = Register()
            let first = try #require(register.wait(for: question(), 1))
            #expect(register.wait(for: question(), 2) == nil)
            register.withdraw(1, from: question())
            let second = try #require(register.wait(for: question(), 3))
            #expect(register.wait(for: question(), 4) == nil)
            #expect(register.decided(question(), number: answersFirst ? first : second, isTrusted: true) == [2, 3, 4])
        }
    }

    @Test("an accepted chain is accepted until its leaf expires, at most a day, and only by what has accepted it") func memory() throws {
        let day: TimeInterval = 86_400
        func accepted(_ question: TrustQuestion, at now: Date) throws -> Register {
            let register = Register()
            let number = try #require(register.wait(for: question, 1))
            #expect(register.decided(question, number: number, isTrusted: true, now: now) == [1])
            return register
        }
        let start = leaf.notBefore
        let register = try accepted(question(), at: start)
        #expect(isAccepted(question(), in: register, at: start + day - 1))
        #expect(!isAccepted(question(), in: register, at: start + day))
        #expect(!isAccepted(question(version: 1), in: register, at: start))
        #expect(!isAccepted(question(expired), in: register, at: start))
        let end = leaf.notAfter
        let late = try accepted(question(), at: end - 10)
        #expect(isAccepted(question(), in: late, at: end - 1) && !isAccepted(question(), in: late, at: end))
        // What accepts it knows that it has expired; it would be asked without end otherwise.
        let after = try accepted(question(expired), at: expired.notAfter + 10)
        #expect(isAccepted(question(expired), in: after, at: expired.notAfter + day))
    }

    @Test("what was rejected is asked about again") func rejected() throws {
        let register = Register()
        let number = try #require(register.wait(for: question(), 1))
        #expect(register.decided(question(), number: number, isTrusted: false) == [1])
        #expect(!isAccepted(question(), in: register, at: leaf.notBefore))
        #expect(register.wait(for: question(), 2) != nil)
    }
}
