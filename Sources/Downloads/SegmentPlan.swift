// SPDX-License-Identifier: Apache-2.0

/// Which bytes of a file are received by which connection: a value without I/O.
///
/// Segments are taken from what is free, each a part of it that shrinks towards the end, so that connections of different speed finish
/// together. Once nothing is free, an idle connection takes half of what the largest segment still lacks.
struct SegmentPlan: Sendable {
    /// The bytes that one response brings.
    struct Segment: Sendable, Equatable {
        let id: Int
        let start: Int64
        /// The first byte that has not been received.
        var position: Int64
        /// The first byte that is not this segment's any more.
        var end: Int64
        /// Whether the end must stay, because the whole response has a digest of its own.
        var isFixed = false
        let since: ContinuousClock.Instant
        var lastProgress: ContinuousClock.Instant

        var remaining: Int64 { end - position }
        var received: Int64 { position - start }
    }

    /// The least number of bytes that is worth a request of its own.
    let minimum: Int64
    /// The length of the file; `nil` until a response has reported it.
    private(set) var total: Int64?
    private(set) var free: [Range<Int64>]
    private(set) var active: [Int: Segment] = [:]
    private var lastID = 0
    /// Bytes and time of the segments that have ended.
    private var ended = (bytes: Int64(0), time: Duration.zero)

    /// Creates a plan for a file of unknown length, of which the first segment is to find out.
    init(minimum: Int64) {
        self.minimum = max(minimum, 1)
        free = [0..<Int64.max]
    }

    /// Creates a plan for the rest of a file.
    init(minimum: Int64, total: Int64, received: ByteRanges) {
        self.minimum = max(minimum, 1)
        self.total = total
        free = received.gaps(in: total)
    }

    /// Whether every byte has been received.
    var isComplete: Bool { total != nil && free.isEmpty && active.isEmpty }

    /// The number of bytes that are missing; `nil` as long as the length is unknown.
    var missing: Int64? {
        guard total != nil else { return nil }
        return free.reduce(0) { $0 + Int64($1.count) } + active.values.reduce(0) { $0 + max($1.remaining, 0) }
    }

    // MARK: Segments

    /// Begins a segment for a connection; `nil` if there is none to begin.
    ///
    /// - Parameter connections: how many are used at most.
    mutating func next(connections: Int, now: ContinuousClock.Instant = .now) -> Segment? {
        guard let total else {
            // The length is not known: only one asks for it.
            guard active.isEmpty, let first = free.first else { return nil }
            return begin(first.lowerBound..<(connections > 1 ? min(first.lowerBound + minimum, first.upperBound) : first.upperBound), now)
        }
        guard let first = free.first else { return half(now) }
        let rest = free.reduce(0) { $0 + Int64($1.count) }
        // A file's last bytes are not requested one by one.
        let wanted = connections > 1 ? max(rest / Int64(2 * connections), minimum) : total
        let length = Int64(first.count) < wanted + minimum ? Int64(first.count) : wanted
        return begin(first.lowerBound..<(first.lowerBound + length), now)
    }

    private mutating func begin(_ range: Range<Int64>, _ now: ContinuousClock.Instant) -> Segment {
        remove(range)
        lastID += 1
        let segment = Segment(
            id: lastID, start: range.lowerBound, position: range.lowerBound, end: range.upperBound, since: now, lastProgress: now)
        active[lastID] = segment
        return segment
    }

    private mutating func remove(_ range: Range<Int64>) {
        free = free.flatMap { other -> [Range<Int64>] in
            guard other.overlaps(range) else { return [other] }
            return [other.lowerBound..<max(range.lowerBound, other.lowerBound), min(range.upperBound, other.upperBound)..<other.upperBound]
                .filter { !$0.isEmpty }
        }
    }

    /// Takes half of what the segment with the most left still lacks.
    private mutating func half(_ now: ContinuousClock.Instant) -> Segment? {
        guard let largest = active.values.filter({ !$0.isFixed }).max(by: { $0.remaining < $1.remaining }) else { return nil }
        guard largest.remaining >= 2 * minimum || largest.remaining >= 2 && isSlow(largest, now) else { return nil }
        let middle = largest.position + largest.remaining / 2
        active[largest.id]?.end = middle
        lastID += 1
        let segment = Segment(id: lastID, start: middle, position: middle, end: largest.end, since: now, lastProgress: now)
        active[lastID] = segment
        return segment
    }

    /// Whether a segment has a quarter of the usual speed at most, and would still take five seconds.
    private func isSlow(_ segment: Segment, _ now: ContinuousClock.Instant) -> Bool {
        guard ended.time > .zero, segment.since + .seconds(2) < now else { return false }
        // Swift 6.2 finds no quotient of durations in a quotient.
        let (usualTime, ownTime): (Double, Double) = (ended.time / .seconds(1), (now - segment.since) / .seconds(1))
        let (usual, own) = (Double(ended.bytes) / usualTime, Double(segment.received) / ownTime)
        return own * 4 < usual && Double(segment.remaining) > own * 5
    }

    /// Records received bytes; returns how many of them are the segment's.
    mutating func receive(_ count: Int, _ id: Int, now: ContinuousClock.Instant = .now) -> Int {
        guard var segment = active[id] else { return 0 }
        let taken = min(Int64(count), max(segment.remaining, 0))
        segment.position += taken
        segment.lastProgress = now
        active[id] = segment
        return Int(taken)
    }

    /// Ends a segment: what it lacks is free again.
    mutating func end(_ id: Int, now: ContinuousClock.Instant = .now) {
        guard let segment = active.removeValue(forKey: id) else { return }
        ended.bytes += segment.received
        ended.time += now - segment.since
        release(segment.position..<max(segment.end, segment.position))
    }

    /// Forgets what a segment has received.
    mutating func discard(_ id: Int) {
        guard let segment = active[id] else { return }
        active[id]?.position = segment.start
    }

    private mutating func release(_ range: Range<Int64>) {
        var set = ByteRanges()
        for range in free + [range] { set.insert(range) }
        free = set.ranges
    }

    // MARK: What responses report

    /// Sets the length of the file.
    mutating func setTotal(_ length: Int64) {
        guard total == nil else { return }
        total = length
        free = free.compactMap { $0.lowerBound < length ? $0.lowerBound..<min($0.upperBound, length) : nil }
        for (id, segment) in active { active[id]?.end = min(segment.end, length) }
    }

    /// Makes a segment that begins at 0 the whole file, which no other connection takes a part of.
    mutating func makeWhole(_ id: Int, length: Int64?) {
        guard active[id]?.start == 0 else { return }
        free = []
        active[id]?.end = length ?? .max
        active[id]?.isFixed = true
        total = length
    }

    /// Ends a file of unknown length where its only segment has.
    mutating func finishWhole(_ id: Int) {
        guard let segment = active[id] else { return }
        active[id]?.end = segment.position
        total = segment.position
    }

    /// Keeps the end of a segment where it is.
    mutating func fix(_ id: Int) { active[id]?.isFixed = true }

    /// Returns the segments that have received nothing for a time although another connection is idle, and frees what they lack.
    mutating func releaseStalled(_ limit: Duration, now: ContinuousClock.Instant = .now) -> [Int] {
        guard free.isEmpty, total != nil else { return [] }
        let stalled = active.values.filter { !$0.isFixed && $0.lastProgress + limit < now && $0.remaining > 0 }
        for segment in stalled {
            active[segment.id]?.end = segment.position
            release(segment.position..<segment.end)
        }
        return stalled.map(\.id)
    }
}
