// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Testing

/// The program that changes networks, and whether it is permitted to.
private enum IPTool {
    static let path =
        ChildProcess.path(of: "ip") ?? ["/usr/sbin/ip", "/sbin/ip"].first { FileManager.default.isExecutableFile(atPath: $0) } ?? "ip"

    static func canMakeNetworks() async -> Bool {
        guard ChildProcess.path(of: "unshare") != nil else { return false }
        let script = "\(path) link add name one type veth peer name other"
        return await (try? ChildProcess("unshare", "-rn", "sh", "-c", script))?.finish().status == 0
    }
}

/// Real changes, in a network namespace with a cable that the test connects and disconnects.
@Suite(.timeLimit(.minutes(1)), .enabled("needs unshare, ip and namespaces without privileges") { await IPTool.canMakeNetworks() })
struct ReachabilityTests {
    /// A network namespace running `curlew-probe`, and a shell that executes the test's commands.
    private struct Network {
        private let shell: ChildProcess

        init(watching host: String) throws {
            let script = #""$0" reachability "$1" & trap "kill $!; exit" EXIT TERM; while read -r line; do eval "$line"; done"#
            shell = try ChildProcess("unshare", "-rn", "sh", "-c", script, Probe.path(), host)
        }

        func ip(_ command: String) { shell.writeLine("\(IPTool.path) \(command)") }

        /// Waits until the probe has reported these values, ignoring intermediate ones.
        func waitFor(network: Int, host: Int) async -> Bool {
            var last = (network: -1, host: -1)
            while last != (network, host), let line = await shell.readLine() {
                let parts = line.split(separator: "=")
                if parts.first == "network" { last.network = Int(parts.last ?? "") ?? -1 }
                if parts.first == "host" { last.host = Int(parts.last ?? "") ?? -1 }
            }
            return last == (network, host)
        }

        /// Waits until the probe has printed these lines in order, ignoring others.
        func waitFor(_ lines: String...) async -> Bool {
            var rest = lines[...]
            while let next = rest.first, let line = await shell.readLine() { if line == next { rest.removeFirst() } }
            return rest.isEmpty
        }
    }

    @Test("changes of addresses, routes, carriers and modems are detected") func changes() async throws {
        let network = try Network(watching: "10.1.2.3")
        #expect(await network.waitFor(network: 0, host: 0))
        network.ip("link add name eth0 type veth peer name other")
        network.ip("link set other up")
        network.ip("link set eth0 up")
        network.ip("addr add 10.1.2.1/24 dev eth0")
        #expect(await network.waitFor("host=1"))
        network.ip("route add default via 10.1.2.3")
        #expect(await network.waitFor("network=1"))
        network.ip("link set other down")
        #expect(await network.waitFor(network: 0, host: 0))
        network.ip("link set other up")
        #expect(await network.waitFor(network: 1, host: 1))
        network.ip("link set eth0 down")
        network.ip("link set eth0 name wwan0")
        #expect(await network.waitFor(network: 0, host: 0))
        network.ip("link set wwan0 up")
        network.ip("route add default via 10.1.2.3")
        #expect(await network.waitFor(network: 2, host: 2))
    }

    @Test("the loopback interface reaches only this machine") func loopback() async throws {
        let network = try Network(watching: "127.0.0.1")
        #expect(await network.waitFor(network: 0, host: 0))
        network.ip("link set lo up")
        #expect(await network.waitFor("host=1"))
    }
}
