// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Decisions on the certificates of hosts, which are made off the loop's thread.

extension EventLoopThread {
    /// Requests a decision on a host's certificates, off this thread. Meanwhile the transfer keeps its slot, without a connection.
    func ask(_ question: TrustQuestion, for transfer: Transfer) {
        takeBack(transfer)
        connectionReporter?.ended(transfer.number, .completed(nil))
        transfer.handle.reset()
        transfer.askedAt = now
        guard ask(question, for: transfer, transfer.number) else { return fail(transfer, .serverCertificate, question.endlessness) }
        armTimer(transfer)
    }

    /// Requests a decision on a host's certificates; once for all transfers and streams that wait for it. `false` if the host has sent other
    /// ones each time, which would have no end.
    func ask(_ question: TrustQuestion, for member: MultiMember, _ id: Int) -> Bool {
        member.questionCount += 1
        guard member.questionCount <= TrustQuestion.limit else { return false }
        guard case .evaluator(let evaluator) = question.requirement.rule, let number = trust.wait(for: question, id) else { return true }
        let mailbox = mailbox
        evaluator.evaluate(question.trust) { isTrusted in mailbox.post(.decided(question, number: number, isTrusted: isTrusted)) }
        return true
    }

    func decided(_ question: TrustQuestion, number: Int, isTrusted: Bool) {
        for id in trust.decided(question, number: number, isTrusted: isTrusted) {
            // One of these may complete another.
            if let transfer = transfers[id], transfer.question == question {
                transfer.question = nil
                transfer.askedAt = nil
                if isTrusted { run(transfer) } else { fail(transfer, .serverCertificate, question.refusal) }
            } else if let stream = streams[id], stream.question == question {
                if let error = stream.decided(isTrusted: isTrusted) { complete(stream, error: error) }
            }
        }
    }
}
