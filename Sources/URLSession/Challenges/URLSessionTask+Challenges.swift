// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

extension URLSessionTask {
    typealias ChallengeAnswer = (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Has the delegates answer a challenge: the task's own; then the session's, whose method for challenges of connections is asked before
    /// that for tasks. By default if none does.
    func answer(
        _ challenge: URLAuthenticationChallenge,
        _ completion: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let shown = Shown(challenge)
        session.queue.schedule { [self] in
            var asked: [DelegateCalls.Asked<Shown<ChallengeAnswer>>] = []
            if let own = values.withLock({ $0.delegate }) { asked.append(askedAboutTask(own, shown)) }
            if let delegate = session.delegate {
                if shown.value.protectionSpace.concernsConnection { asked.append(askedAboutSession(delegate, shown)) }
                if let delegate = delegate as? any URLSessionTaskDelegate { asked.append(askedAboutTask(delegate, shown)) }
            }
            // Tasks that share the connection wait for the same decision.
            let task = shown.value.protectionSpace.concernsConnection ? nil : self
            session.calls.ask(asked[...], about: task, on: session.queue) { answer in
                let (disposition, credential) = answer?.value ?? (.performDefaultHandling, nil)
                self.noteAnswer(disposition, to: shown.value)
                completion(disposition, credential)
            }
        }
    }

    private func askedAboutTask(
        _ delegate: any URLSessionTaskDelegate, _ challenge: Shown<URLAuthenticationChallenge>
    ) -> DelegateCalls.Asked<Shown<ChallengeAnswer>> {
        DelegateCalls.Asked(object: delegate, decision: .taskChallenge) { answer in
            delegate.urlSession(self.session, task: self, didReceive: challenge.value) { answer(Shown(($0, $1))) }
        }
    }

    private func askedAboutSession(
        _ delegate: any URLSessionDelegate, _ challenge: Shown<URLAuthenticationChallenge>
    ) -> DelegateCalls.Asked<Shown<ChallengeAnswer>> {
        DelegateCalls.Asked(object: delegate, decision: .sessionChallenge) { answer in
            delegate.urlSession(self.session, didReceive: challenge.value) { answer(Shown(($0, $1))) }
        }
    }
}

extension URLProtectionSpace {
    /// Whether a challenge in the space is about a connection and not about a request.
    fileprivate var concernsConnection: Bool {
        switch authenticationMethod {
        case NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodNTLM,
            NSURLAuthenticationMethodNegotiate:
            true
        default: false
        }
    }
}
