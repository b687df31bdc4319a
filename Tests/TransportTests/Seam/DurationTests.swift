// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct DurationTests {
    private static let century: Nanoseconds = 3_155_760_000_000_000_000

    @Test(
        "every duration converts to nanoseconds without trapping",
        arguments: [
            (.zero, 0), (.seconds(-1), 0), (.nanoseconds(-1), 0), (.seconds(Int64.min), 0), (.nanoseconds(1), 1),
            (Duration(secondsComponent: 0, attosecondsComponent: 1), 0), (.milliseconds(1500), 1_500_000_000),
            (.seconds(3_155_759_999), 3_155_759_999_000_000_000), (.seconds(3_155_760_000), century), (.seconds(Int64.max), century),
        ] as [(Duration, Nanoseconds)])
    func nanoseconds(duration: Duration, expected: Nanoseconds) {
        #expect(duration.nanoseconds == expected)
        #expect(!MonotonicTime.now().addingReportingOverflow(duration.nanoseconds).overflow)
    }

    @Test(
        "milliseconds are rounded up and never 0, which means no limit to libcurl",
        arguments: [
            (.zero, 1), (.seconds(-3), 1), (.nanoseconds(1), 1), (.microseconds(1001), 2), (.seconds(30), 30_000),
            (.seconds(Int64.max), Int(Int32.max)),
        ] as [(Duration, Int)])
    func milliseconds(duration: Duration, expected: Int) {
        #expect(duration.atLeastOneMillisecond == expected)
    }

    @Test("the clock is monotonic")
    func clock() {
        let times = (0..<1000).map { _ in MonotonicTime.now() }
        #expect(times == times.sorted())
    }
}
