// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTransport
import Testing

@testable import CurlewDownloads
@testable import CurlewHTTP

@Suite struct ByteRangesTests {
    @Test("ranges that touch are joined, and gaps are what is missing") func insert() {
        var set = ByteRanges()
        for range in [10..<20, 30..<40, 50..<60, 20..<30, 0..<0, 55..<70] as [Range<Int64>] { set.insert(range) }
        #expect(set.ranges == [10..<40, 50..<70])
        #expect(set.count == 50)
        #expect(set.gaps(in: 100) == [0..<10, 40..<50, 70..<100])
        #expect(set.gaps(in: 60) == [0..<10, 40..<50])
        #expect(set.gaps(in: 5) == [0..<5])
        #expect(ByteRanges().gaps(in: 0) == [])
    }

    @Test("any order of insertion gives the same set") func orders() {
        var pieces: [Range<Int64>] = (0..<40).map { Int64($0) * 5..<Int64($0) * 5 + 5 }
        for _ in 0..<20 {
            pieces.shuffle()
            var set = ByteRanges()
            for piece in pieces { set.insert(piece) }
            #expect(set.ranges == [0..<200])
        }
    }
}

@Suite struct SegmentPlanTests {
    private let start = ContinuousClock.now

    /// A plan for a file of 1000 bytes.
    private func makePlan(_ received: ByteRanges = ByteRanges()) -> SegmentPlan {
        SegmentPlan(minimum: 10, total: 1000, received: received)
    }

    private func expectIdle(_ plan: inout SegmentPlan, _ connections: Int, now: ContinuousClock.Instant = .now) {
        let next = plan.next(connections: connections, now: now)
        #expect(next == nil)
    }

    @Test("the first segment is small, and alone until the length is known") func first() throws {
        var plan = SegmentPlan(minimum: 10)
        let probe = try plan.required(connections: 4)
        #expect(probe.start == 0 && probe.end == 10)
        expectIdle(&plan, 4)
        #expect(plan.missing == nil)
        plan.setTotal(1000)
        #expect(plan.missing == 1000)
        let second = try plan.required(connections: 4)
        #expect(second.start == 10 && second.end == 10 + 990 / 8)
    }

    @Test("a single connection requests the whole") func single() throws {
        var plan = SegmentPlan(minimum: 10)
        let first = try plan.required(connections: 1)
        #expect(first.end == .max)
        plan.setTotal(5)
        #expect(plan.active[1]?.end == 5)
    }

    @Test("a file that is shorter than the first segment has one only") func short() throws {
        var plan = SegmentPlan(minimum: 10)
        let probe = try plan.required(connections: 4)
        plan.setTotal(5)
        expectIdle(&plan, 4)
        do {
            let taken = plan.receive(7, probe.id)
            #expect(taken == 5)
        }
        plan.end(probe.id)
        #expect(plan.isComplete)
    }

    @Test("only what is missing is requested") func resumed() throws {
        var received = ByteRanges()
        received.insert(0..<500)
        received.insert(600..<990)
        var plan = makePlan(received)
        #expect(plan.missing == 110)
        var requested = ByteRanges()
        while let segment = plan.next(connections: 2) {
            #expect(received.gaps(in: 1000).contains { $0.lowerBound <= segment.start && segment.end <= $0.upperBound })
            requested.insert(segment.start..<segment.end)
            do {
                let taken = plan.receive(Int(segment.remaining), segment.id)
                #expect(taken == segment.remaining)
            }
            plan.end(segment.id)
        }
        #expect(requested.ranges == [500..<600, 990..<1000])
        #expect(plan.isComplete)
    }

    @Test("every byte is received once, whichever segments fail or are taken over") func coverage() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            var plan = makePlan()
            var seen = [Int](repeating: 0, count: 1000)
            while !plan.isComplete {
                while plan.active.count < 4, plan.next(connections: 4) != nil {}
                let segment = try #require(plan.active.values.randomElement())
                let count = Int.random(in: 1...30, using: &generator)
                let taken = plan.receive(count, segment.id)
                for position in segment.position..<(segment.position + Int64(taken)) { seen[Int(position)] += 1 }
                if taken < count || Int.random(in: 0..<20, using: &generator) == 0 { plan.end(segment.id) }
            }
            #expect(seen.allSatisfy { $0 == 1 })
        }
    }

    @Test("an idle connection takes half of the largest rest, and no rest that is too small") func half() throws {
        var plan = SegmentPlan(minimum: 10, total: 100, received: ByteRanges())
        let first = try plan.required(connections: 1)
        #expect(first.end == 100)
        _ = plan.receive(20, first.id)
        let second = try plan.required(connections: 2)
        #expect(second.start == 60 && second.end == 100)
        #expect(plan.active[first.id]?.end == 60)
        // What the server sends beyond the new end is not the first one's.
        do {
            let taken = plan.receive(50, first.id)
            #expect(taken == 40)
        }
        _ = plan.receive(25, second.id)
        expectIdle(&plan, 2)
    }

    @Test("a small rest that is slow is taken over too") func slow() throws {
        var plan = SegmentPlan(minimum: 100, total: 200, received: ByteRanges())
        let first = try plan.required(connections: 2, now: start)
        let second = try plan.required(connections: 2, now: start)
        _ = plan.receive(Int(first.remaining), first.id, now: start + .seconds(1))
        plan.end(first.id, now: start + .seconds(1))
        _ = plan.receive(Int(second.remaining) - 20, second.id, now: start + .seconds(1))
        expectIdle(&plan, 2, now: start + .seconds(3))
        let thief = try plan.required(connections: 2, now: start + .seconds(3600))
        #expect(thief.remaining == 10)
    }

    @Test("a segment that receives nothing is released, and what it lacks is free") func stalled() throws {
        var plan = SegmentPlan(minimum: 10, total: 30, received: ByteRanges())
        let first = try plan.required(connections: 1, now: start)
        _ = plan.receive(25, first.id, now: start)
        let early = plan.releaseStalled(.seconds(10), now: start + .seconds(9))
        let late = plan.releaseStalled(.seconds(10), now: start + .seconds(11))
        #expect(early.isEmpty && late == [first.id])
        #expect(plan.free == [25..<30])
        do {
            let taken = plan.receive(5, first.id)
            #expect(taken == 0)
        }
        plan.end(first.id)
        #expect(plan.free == [25..<30])
    }

    @Test("what a segment has received can be forgotten") func discarded() throws {
        var plan = SegmentPlan(minimum: 10, total: 10, received: ByteRanges())
        let first = try plan.required(connections: 1)
        _ = plan.receive(10, first.id)
        plan.discard(first.id)
        plan.end(first.id)
        #expect(plan.free == [0..<10])
    }
}

@Suite struct DigestCheckTests {
    @Test("a digest that differs is named with both values") func mismatch() {
        let expected = ContentDigest(of: Data()).named
        var check = DigestCheck(expected)
        let none = check.mismatch()
        #expect(none == nil)
        check = DigestCheck(expected)
        [UInt8(1)].withUnsafeBytes { check.update($0) }
        let mismatch = check.mismatch()
        #expect(mismatch?.algorithm == "sha-256")
        #expect(mismatch?.expected == expected["sha-256"])
        #expect(mismatch?.actual == Data(SHA256.digest(of: [1])))
    }
}

@Suite struct LibcryptoTests {
    @Test func `libcrypto is found wherever libcurl's TLS is OpenSSL`() {
        if CurlInfo.current.tlsLibrary?.hasPrefix("OpenSSL") == true { #expect(Libcrypto.system != nil) }
    }
}

@Suite struct EntityVersionTests {
    private func head(_ fields: [String: String]) -> ResponseHead {
        ResponseHead(statusCode: 206, headers: HTTPHeaders(fields))
    }

    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:39 GMT"

    @Test(
        "a response is of the same version by its validators only",
        arguments: [
            (["ETag": "\"1\""], ["ETag": "\"1\""], true, EntityVersion.Match.same),
            (["ETag": "\"1\""], ["ETag": "\"2\""], true, .different),
            (["ETag": "\"1\""], ["ETag": "W/\"1\""], true, .different),
            (["ETag": "\"1\""], ["ETag": "\"2\""], false, .unknown),
            (["ETag": "\"1\""], [:], true, .unknown),
            (["Last-Modified": date, "Date": later], ["Last-Modified": date, "Date": later], false, .same),
            (["Last-Modified": date, "Date": later], ["Last-Modified": later, "Date": later], true, .different),
            (["Last-Modified": date, "Date": later], ["Last-Modified": later, "Date": later], false, .unknown),
        ]) func match(_ first: [String: String], _ other: [String: String], _ isOwn: Bool, _ expected: EntityVersion.Match)
    {
        let version = EntityVersion(head(first), total: 10)
        #expect(version.match(head(other), total: 10, isOwn: isOwn, condition: nil) == expected)
        #expect(version.match(head(first), total: 11, isOwn: isOwn, condition: version.validator) == .different)
    }

    @Test("a condition is confirmed only by its validator, which is the server's own") func conditional() {
        let version = EntityVersion(head(["ETag": "\"1\""]), total: 10)
        #expect(version.match(head([:]), total: nil, isOwn: true, condition: "\"1\"") == .unknown)
        #expect(version.match(head(["ETag": "\"2\""]), total: nil, isOwn: true, condition: "\"1\"") == .different)
        #expect(version.match(head(["ETag": "\"a\""]), total: nil, isOwn: false, condition: "\"a\"") == .same)
        #expect(version.match(head(["ETag": "\"b\""]), total: nil, isOwn: false, condition: "\"a\"") == .different)
        let dated = EntityVersion(head(["Last-Modified": Self.date, "Date": Self.later]), total: 10)
        let other = head(["ETag": "\"b\"", "Last-Modified": Self.date])
        #expect(dated.match(other, total: nil, isOwn: false, condition: "\"a\"") == .different)
        #expect(dated.match(other, total: nil, isOwn: false, condition: nil) == .same)
        #expect(version.match(head(["Last-Modified": Self.date]), total: nil, isOwn: false, condition: Self.date) == .same)
    }
}

@Suite struct DownloadRateLimitTests {
    @Test("bytes are taken at the rate, after a burst of a quarter of a second") func rate() {
        let limit = DownloadRateLimit(bytesPerSecond: 1000)
        let start = ContinuousClock.now + .seconds(10)
        #expect(limit.reserve(250, now: start) == .zero)
        #expect(limit.reserve(500, now: start) == .milliseconds(500))
        #expect(limit.reserve(500, now: start + .milliseconds(500)) == .milliseconds(500))
        // Idle time is not saved up.
        #expect(limit.reserve(250, now: start + .seconds(100)) == .zero)
        #expect(limit.reserve(100, now: start + .seconds(100)) == .milliseconds(100))
    }

    @Test("a rate below 1 counts as 1") func least() {
        #expect(DownloadRateLimit(bytesPerSecond: -5).bytesPerSecond == 1)
    }
}

extension SegmentPlan {
    fileprivate mutating func required(connections: Int, now: ContinuousClock.Instant = .now) throws -> Segment {
        let segment = next(connections: connections, now: now)
        return try #require(segment)
    }
}
