// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Decisions on the certificates of hosts, and on those that hosts get, which are made off the loop's thread.

extension EventLoopThread {
    /// Requests a decision on a connection, off this thread. Meanwhile the transfer keeps its slot, without a connection.
    func ask(_ question: TrustQuestion, for transfer: Transfer) {
        takeBack(transfer)
        connectionReporter?.ended(transfer.number, .completed(nil))
        transfer.handle.reset()
        // libcurl may have lost a pooled connection after it has sent the request, and has made another by itself.
        guard !transfer.state.requestWasSent || transfer.state.mayRepeat, transfer.exchange.bodyBytesSent == 0 || transfer.rewind() else {
            return fail(transfer, .connectionLost, "The connection ended before a response, and the request can't be sent again")
        }
        if question.isAnswered {
            transfer.exchange.question = nil
            return run(transfer)
        }
        transfer.exchange.askedAt = now
        guard ask(question, for: transfer, transfer.number) else { return fail(transfer, .serverCertificate, question.endlessness) }
        armTimer(transfer)
    }

    /// Requests a decision on a connection; once for all transfers and streams that wait for it. `false` if the host has sent other
    /// certificates each time, which would have no end.
    func ask(_ question: TrustQuestion, for member: MultiMember, _ id: Int) -> Bool {
        member.questionCount += 1
        guard member.questionCount <= TrustQuestion.limit else { return false }
        guard let number = trust.wait(for: question, id) else { return true }
        let (mailbox, requirement) = (mailbox, question.requirement)
        if let trust = question.trust, case .evaluator(let evaluator) = requirement.rule {
            evaluator.evaluate(trust) { mailbox.post(.decided(question, number: number, .trust($0))) }
        } else if let chooser = requirement.chooser {
            let failureCount = chooser.choices.failureCount(at: requirement.place(of: chooser))
            let request = CertificateRequest(
                host: requirement.host, port: requirement.port, issuers: question.issuers, failureCount: failureCount)
            chooser.choose(request) { mailbox.post(.decided(question, number: number, .certificate($0))) }
        }
        return true
    }

    func decided(_ question: TrustQuestion, number: Int, _ answer: TrustQuestion.Answer) {
        let isTrusted = if case .trust(true) = answer { true } else { false }
        let waiters = trust.decided(question, number: number, isTrusted: isTrusted)
        if !waiters.isEmpty, case .certificate(let chosen) = answer { note(chosen, as: question) }
        for id in waiters {
            // One of these may complete another.
            if let transfer = transfers[id], transfer.exchange.question == question {
                transfer.exchange.question = nil
                transfer.exchange.askedAt = nil
                let error = question.error(after: answer) { .transferFailed(transfer.failure($0, $1)) }
                if let error { complete(transfer, error: error) } else { run(transfer) }
            } else if let stream = streams[id], stream.question == question {
                if let error = stream.decided(answer) { complete(stream, error: error) }
            }
        }
    }

    /// Remembers the certificate that was chosen, or that there is none.
    private func note(_ answer: CertificateChooser.Answer, as question: TrustQuestion) {
        guard let chooser = question.requirement.chooser else { return }
        let place = question.requirement.place(of: chooser)
        switch answer {
        case .certificate(let certificate): chooser.choices.choose(certificate, at: place)
        case .none: chooser.choices.choose(nil, at: place)
        case .cancel, .notAsked: break
        }
    }
}
