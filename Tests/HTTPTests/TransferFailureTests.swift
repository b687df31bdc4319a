// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct TransferFailureTests {
    @Test(
        "only user name and password are removed from the URL",
        arguments: [
            ("http://u:p@example.org/a", "http://example.org/a"),
            ("http://u@example.org", "http://example.org"),
            ("http://@example.org", "http://example.org"),
            ("http://u:p@q@example.org:80?x", "http://example.org:80?x"),
            ("//u:p@example.org/", "//example.org/"),
            ("http://example.org/a@b", "http://example.org/a@b"),
            ("http://example.org?a@b", "http://example.org?a@b"),
            ("http://example.org#a@b", "http://example.org#a@b"),
            ("http://u:p@example.org/?to=http://v:q@example.com/", "http://example.org/?to=http://example.com/"),
            ("http://example.org//a@b/c", "http://example.org//a@b/c"),
            ("file:///a@b", "file:///a@b"),
            ("http://", "http://"),
            ("a@b", "a@b"),
            ("", ""),
        ])
    func url(_ url: String, _ shown: String) {
        let failure = TransferFailure(kind: .connect, url: url, phase: .connecting, message: "refused")
        #expect(failure.url == shown)
        #expect(failure.description.contains(", \(shown), "))
    }

    @Test("the description has message, kind, phase, URL, libcurl's code and the bytes received")
    func description() {
        let failure = TransferFailure(
            kind: .idleTimeout, url: "http://u:p@example.org/", phase: .receivingBody, code: 28, message: "Nothing came", bytesReceived: 7)
        #expect(
            failure.description
                == "Nothing came (idleTimeout while receivingBody, http://example.org/, libcurl code 28, 7 body bytes received)")
        let ours = TransferFailure(kind: .queueTimeout, url: "http://example.org/", phase: .queued, message: "No connection")
        #expect(ours.description == "No connection (queueTimeout while queued, http://example.org/, 0 body bytes received)")
        #expect(ours.errorDescription == ours.description)
    }

    @Test("the five timeouts are timeouts, other kinds are not")
    func timeouts() {
        func isTimeout(_ kind: TransferFailure.Kind) -> Bool {
            TransferFailure(kind: kind, url: "", phase: .waiting, message: "").isTimeout
        }
        for kind in [TransferFailure.Kind.connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout] {
            #expect(isTimeout(kind), "\(kind)")
        }
        for kind in [TransferFailure.Kind.connect, .connectionLost, .other, .decoding] { #expect(!isTimeout(kind), "\(kind)") }
    }

    @Test("phases compare in the order of a transfer")
    func phases() {
        let order: [TransferFailure.Phase] = [
            .queued, .resolving, .connecting, .securing, .sending, .waiting, .receivingHead, .receivingBody,
        ]
        #expect(order.reversed().sorted() == order)
    }
}
