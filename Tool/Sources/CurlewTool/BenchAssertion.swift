// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// What `bench --assert` demands: a latency (`p99<200ms`, `mean<1s`, `max<2s`), failures (`failures<1%`, `failures<=0`) or a rate
/// (`rate>100`).
struct BenchAssertion: ExpressibleByArgument, Equatable, Sendable {
    enum Quantity: Equatable {
        case percentile(Double)
        case mean
        /// Of all requests, those without a response and those with a status of 400 or more, in per cent.
        case failureShare
        case failureCount
        case rate
    }

    /// What a run has measured.
    struct Measurements {
        /// In milliseconds, in ascending order; infinite for requests that were not sent.
        let latencies: [Double]
        let failures: Int
        let count: Int
        /// Of those that did not fail.
        let perSecond: Double
    }

    let quantity: Quantity
    let sign: String
    /// In milliseconds, per cent, or as it is.
    let limit: Double
    let text: String

    init?(argument: String) {
        guard let sign = ["<=", ">=", "<", ">"].first(where: argument.containsScalars), let range = argument.firstScalarRange(of: sign)
        else {
            return nil
        }
        let name = argument[..<range.lowerBound].lowercased()
        let value = argument[range.upperBound...].lowercased()
        (self.sign, text) = (sign, argument)
        func number(_ text: some StringProtocol) -> Double? {
            text.utf8.allSatisfy { $0.isASCIIDigit || $0 == UInt8(ascii: ".") } ? Double(String(text)) : nil
        }
        func milliseconds() -> Double? {
            for (unit, factor) in [("ms", 1.0), ("us", 0.001), ("s", 1000)] where value.hasByteSuffix(unit) {
                return number(value.dropLastScalars(unit.utf8.count)).map { $0 * factor }
            }
            return nil
        }
        let found: (Quantity, Double?)?
        switch name {
        case "mean": found = (.mean, milliseconds())
        case "max": found = (.percentile(100), milliseconds())
        case "failures" where value.hasByteSuffix("%"): found = (.failureShare, number(value.dropLastScalars()))
        case "failures": found = (.failureCount, number(value))
        case "rate": found = (.rate, number(value))
        case _ where name.hasBytePrefix("p"):
            guard let percent = number(name.dropFirstScalars()), percent > 0, percent <= 100 else { return nil }
            found = (.percentile(percent), milliseconds())
        default: return nil
        }
        guard let found, let limit = found.1 else { return nil }
        (quantity, self.limit) = (found.0, limit)
    }

    /// Returns what is wrong; `nil` if the demand is met. Without a response there is no latency that could meet one.
    func failure(of run: Measurements) -> String? {
        let value: Double
        var shown: String
        switch quantity {
        case .percentile, .mean:
            guard !run.latencies.isEmpty else { return "\(text): there was no response" }
            if case .percentile(let percent) = quantity {
                value = BenchRun.percentile(percent, of: run.latencies)
            } else {
                value = run.latencies.reduce(0, +) / Double(run.latencies.count)
            }
            shown = value.isFinite ? MetaText.text(value) : "without an end, as requests were due and not sent"
        case .failureShare:
            value = run.count == 0 ? 100 : Double(run.failures) / Double(run.count) * 100
            shown = "\(BenchRun.number(value)) %"
        case .failureCount:
            value = Double(run.failures)
            shown = "\(run.failures)"
        case .rate:
            value = run.perSecond
            shown = "\(BenchRun.number(value)) a second"
        }
        let isMet =
            switch sign {
            case "<": value < limit
            case "<=": value <= limit
            case ">": value > limit
            default: value >= limit
            }
        return isMet ? nil : "\(text): it was \(shown)"
    }
}
