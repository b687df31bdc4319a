// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Testing

/// Very many requests, cancellations and pauses, in a separate process, after which nothing may be left.
///
/// `CURLEW_TEST_SHORT=1` is for runs under a sanitizer; with `CURLEW_TEST_LONG=1` there are a million requests.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LoadTests {
    /// Holds `/together` until a gate opens, and sends a part of `/partial`.
    private static func makeServer(_ gate: Gate = Gate()) throws -> LoopbackServer {
        let standard = ServerRoutes.standard
        return try LoopbackServer(bodies: ServerRoutes.bodies, recording: false) { request, connection in
            switch request.path {
            case "/together": return connection.wait(until: gate, timeout: .seconds(120)) ? .ok("0123456789") : nil
            case "/partial":
                try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789")
                connection.waitUntilClosed()
                return nil
            default: return try standard(request, connection)
            }
        }
    }

    /// Expects every handler to have been called once, and no object, thread, descriptor or connection to be left.
    private static func expectNothingLeft(_ report: Probe.Report, _ server: LoopbackServer) async throws {
        #expect(report.status == 0)
        #expect(report["called"] == report["expected"])
        #expect(report["once"] == report["expected"])
        #expect(report["alive"] == 0)
        #expect(try #require(report["threadsAfter"]) <= #require(report["threadsBefore"]))
        #expect(try #require(report["descriptorsAfter"]) <= #require(report["descriptorsBefore"]))
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("ten thousand requests are in flight at the same time, and all succeed") func together() async throws {
        #expect(ProcessProbe.raiseDescriptorLimit() > Scale.together + 200, "a descriptor for each connection is needed")
        let gate = Gate()
        let server = try Self.makeServer(gate)
        let probe = try Probe.start("together", server.url(""), "\(Scale.together)")
        #expect(await gate.arrivals(Scale.together, timeout: .seconds(120)))
        #expect(server.openConnections >= Scale.together)
        gate.open()
        let report = await Probe.Report(probe)
        print("\(Scale.together) requests at once: \(report["milliseconds"] ?? -1) ms, peak \((report["peak"] ?? 0) >> 20) MiB")
        #expect(report["right"] == Scale.together)
        try await Self.expectNothingLeft(report, server)
    }

    @Test("memory use stays constant over many requests in one process") func soak() async throws {
        let server = try Self.makeServer()
        let report = try await Probe.run("soak", server.url(""), "\(Scale.soak)")
        let (tenth, end) = (try #require(report["tenth"]), try #require(report["end"]))
        print(
            "\(Scale.soak) requests: \(tenth >> 10) KiB after a tenth, \(end >> 10) KiB at the end, \(report["perSecond"] ?? -1) a second")
        #expect(report["right"] == Scale.soak)
        if Scale.limitsMemory { #expect(end - tenth < 2 << 20) }
        try await Self.expectNothingLeft(report, server)
    }

    @Test("hundreds of requests cancelled at each stage are all released") func cancel() async throws {
        let server = try Self.makeServer()
        let (full, silent) = (try StuckListener(.full), try StuckListener(.silent))
        let resolver = try await SlowResolver()
        let ports = ["CURLEW_PROBE_FULL_PORT": "\(full.port)", "CURLEW_PROBE_SILENT_PORT": "\(silent.port)"]
        let report = try await Probe.run(
            "cancel", server.url(""), "\(Scale.cancels)", environment: ports.merging(resolver.environment) { $1 })
        for stage in ["unstarted", "queued", "resolving", "connecting", "securing", "head", "body", "retry", "handler"] {
            print("cancelled, \(stage): \(report["\(stage)PerSecond"] ?? -1) a second")
            #expect(report[stage] == Scale.cancels, "\(stage)")
        }
        try await Self.expectNothingLeft(report, server)
    }

    @Test("transfers suspended and resumed at random complete") func pause() async throws {
        let server = try Self.makeServer()
        let report = try await Probe.run("pause", server.url(""), "\(Scale.pauses)")
        print("\(Scale.pauses) transfers, stopped \(report["stops"] ?? -1) times")
        #expect(report["right"] == Scale.pauses)
        #expect(try #require(report["stops"]) > Scale.pauses)
        try await Self.expectNothingLeft(report, server)
    }
}
