// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ServerTrustPolicyManagerTests {
    private static func isPinned(_ policy: ServerTrustPolicy?) -> Bool {
        if case .pinPublicKeys = policy { true } else { false }
    }

    private static let pin = ServerTrustPolicy.pinPublicKeys(publicKeys: [], validateCertificateChain: true, validateHost: true)

    @Test(
        "a policy is found by every spelling of its host, whatever the spelling of its key",
        arguments: [
            ["b\u{FC}cher.example", "xn--bcher-kva.example", "XN--BCHER-KVA.example.", "B\u{DC}CHER.example"],
            ["127.0.0.1", "127.1", "0x7f.1", "2130706433"], ["::1", "[::1]", "0:0:0:0:0:0:0:1"], ["Example.org", "example.org."],
        ])
    func spellings(_ names: [String]) {
        for key in names {
            let manager = ServerTrustPolicyManager(policies: [key: Self.pin])
            #expect(manager.unusableKeys.isEmpty && manager.defect == nil)
            for host in names { #expect(Self.isPinned(manager.serverTrustPolicy(forHost: host)), "\(key) \(host)") }
            #expect(manager.serverTrustPolicy(forHost: "other.example") == nil)
        }
    }

    @Test("a wildcard is exactly one label, and a host's own policy has precedence") func wildcards() {
        let manager = ServerTrustPolicyManager(policies: [
            "*.Example.test": Self.pin, "open.example.test": .disableEvaluation, "*.b\u{FC}cher.example": Self.pin,
        ])
        #expect(manager.unusableKeys.isEmpty)
        for host in ["a.example.test", "A.EXAMPLE.test.", "xn--bcher-kva.example.test", "a.xn--bcher-kva.example"] {
            #expect(Self.isPinned(manager.serverTrustPolicy(forHost: host)), "\(host)")
        }
        for host in ["example.test", "a.b.example.test", "aexample.test", ".example.test", "example.test.other"] {
            #expect(manager.serverTrustPolicy(forHost: host) == nil, "\(host)")
        }
        #expect(!Self.isPinned(manager.serverTrustPolicy(forHost: "open.example.test")))
        #expect(manager.serverTrustPolicy(forHost: "open.example.test") != nil)
    }

    @Test(
        "a key that can match no host is named, and makes the manager unusable",
        arguments: [
            "https://example.org", "example.org:443", "", " example.org", "example.org/", "*", "*.", "*.*.example.org", "a.*.example.org",
            "**.example.org", ".example.org", "*.0.0.1", "*.::1", "[::1]:443", "example..org", "example.org\u{301}/", "a\0b",
            "example.org,example.net", "(example.org)", "example.org=",
        ])
    func unusable(_ key: String) throws {
        let manager = ServerTrustPolicyManager(policies: [key: Self.pin, "example.org": Self.pin])
        #expect(manager.unusableKeys == [key])
        #expect(try #require(manager.defect).contains("\"\(key)\""))
        #expect(Self.isPinned(manager.serverTrustPolicy(forHost: "example.org")))
    }

    @Test("a subclass may give keys a meaning of its own") func subclass() {
        final class Patterns: ServerTrustPolicyManager, @unchecked Sendable {}  // immutable
        let manager = Patterns(policies: ["**.example.org": Self.pin])
        #expect(manager.unusableKeys == ["**.example.org"] && manager.defect == nil)
    }

    @Test("of several spellings the normal one counts") func several() {
        let manager = ServerTrustPolicyManager(policies: [
            "EXAMPLE.org": .disableEvaluation, "example.org": Self.pin, "example.org.": .disableEvaluation,
        ])
        #expect(Self.isPinned(manager.serverTrustPolicy(forHost: "example.org")))
    }
}
