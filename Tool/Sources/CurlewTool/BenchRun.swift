// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// The steps of `bench --rate`: requests to begin a second, with commas between them.
struct BenchRates: ExpressibleByArgument, Equatable, Sendable {
    let values: [Double]

    init?(argument: String) {
        let words = argument.splitScalars(separator: ",", omittingEmptySubsequences: false)
        values = words.compactMap { Double($0) }
        guard values.count == words.count, values.allSatisfy(\.isFinite) else { return nil }
    }
}

/// A request of `bench`, and what came of it.
struct BenchSample: Sendable {
    /// When the request was due, since the beginning of the step.
    var due: Duration
    /// From when the request was due, which with a rate is not when it could be sent: a server that stalls delays the requests behind,
    /// and these count too (coordinated omission).
    var latency: Duration
    var status: Int?
    var failure: Outcome?
    var bytes: Int64 = 0
    /// How often libcurl has sent the request again.
    var repetitions = 0
}

/// The sending of `bench`.
struct BenchRun: Sendable {
    /// One, or two whose URLs are compared.
    let plans: [RequestPlan]
    let body: Data?
    /// How many requests go to each URL in each step; `nil` for as many as begin within the duration.
    let count: Int?
    let duration: Duration?
    let concurrency: Int
    /// None for requests that begin as soon as others have ended.
    let rates: [Double]
    let assertions: [BenchAssertion]
    let report: NewFile?
    let manager: SessionManager

    func run() async -> Outcome {
        var figures: [BenchFigures] = []
        if rates.isEmpty {
            figures = await step(nil)
        } else {
            for rate in rates where !Task.isCancelled { figures += await step(rate) }
        }
        let outcome = Self.outcome(figures.flatMap(\.failures), of: figures.reduce(0) { $0 + $1.samples.count })
        let comparison = figures.count == 2 && plans.count == 2 ? BenchComparison(figures[0], figures[1]) : nil
        let isInterrupted = Task.isCancelled
        do {
            let text = BenchText(figures: figures, comparison: comparison, width: Output.standard.width ?? 80).text
            try Output.standard.write(Data(text.utf8))
        } catch {
            return Outcome(error)
        }
        if let report {
            let page = BenchPage(run: self, figures: figures, comparison: comparison, isInterrupted: isInterrupted)
            if let failure = report.write(Data(page.html.utf8)) { return failure }
        }
        return outcome.status == .interrupted ? outcome : broken(figures) ?? outcome
    }

    /// The outcome if an assertion does not hold; `nil` if all do.
    private func broken(_ figures: [BenchFigures]) -> Outcome? {
        let unmet = unmet(by: figures)
        return unmet.isEmpty ? nil : Outcome(status: .other, message: "not met: \(unmet.joined(separator: "; "))")
    }

    /// The assertions that do not hold, each with what it was, and where.
    func unmet(by figures: [BenchFigures]) -> [String] {
        figures.flatMap { figures in
            let measurements = figures.measurements
            return assertions.compactMap { $0.failure(of: measurements) }.map { (figures.name.map { "\($0): " } ?? "") + $0 }
        }
    }

    /// The outcome of a run: that of the most frequent failure, the first of several.
    static func outcome(_ failures: [Outcome], of count: Int) -> Outcome {
        let counts = Dictionary(grouping: failures, by: \.status).mapValues(\.count)
        guard let most = counts.values.max(), let first = failures.first(where: { counts[$0.status] == most }) else { return .success }
        let message = failures.count == count ? "all requests failed: \(first.message ?? "")" : nil
        return Outcome(status: first.status, message: message ?? "\(failures.count) of \(count) requests failed")
    }

    // MARK: Sending

    /// Sends the requests of a step. Returns the figures of each URL.
    private func step(_ rate: Double?) async -> [BenchFigures] {
        let start = ContinuousClock.now
        let end = duration.map { start + $0 }
        let count = count.map { $0 * plans.count } ?? .max
        let workers = min(concurrency, count)
        var samples: [[BenchSample]] = plans.map { _ in [] }
        await withTaskGroup(of: [[BenchSample]].self) { group in
            for worker in 0..<workers {
                group.addTask {
                    var own: [[BenchSample]] = plans.map { _ in [] }
                    for (row, number) in stride(from: worker, to: count, by: workers).enumerated() {
                        if Task.isCancelled { break }
                        var due = ContinuousClock.now
                        if let end, due >= end { break }
                        if let rate {
                            due = start + .seconds(Double(number) / rate)
                            if let end, due >= end { break }
                            guard (try? await Task.sleep(until: due, clock: .continuous)) != nil else { break }
                        }
                        // Each worker alternates, so that a slow URL gets no less of them.
                        let index = (worker + row) % plans.count
                        let sample = await send(plans[index], due: due, since: start)
                        // A request that the end of the run has cancelled tells nothing of the server.
                        if sample.failure != nil, Task.isCancelled { break }
                        own[index].append(sample)
                    }
                    return own
                }
            }
            for await own in group { for (index, more) in own.enumerated() { samples[index] += more } }
        }
        var elapsed = ContinuousClock.now - start
        // The time after the last request is part of a rate.
        if let rate, !Task.isCancelled { elapsed = max(elapsed, duration ?? .seconds(Double(count) / rate)) }
        let due = if let rate, let duration, !Task.isCancelled { Int(duration / .seconds(1) * rate) } else { 0 }
        return samples.enumerated().map { index, own in
            BenchFigures(
                name: plans.count > 1 ? ["first URL", "second URL"][index] : rates.count > 1 ? rate.map { "rate \(Self.plain($0))" } : nil,
                url: RequestURL.shown(plans[index].url), rate: rate, samples: own,
                unsent: max(share(of: due, for: index, workers: workers) - own.count, 0), elapsed: elapsed)
        }
    }

    /// How many of the first requests are for a URL.
    private func share(of due: Int, for index: Int, workers: Int) -> Int {
        guard plans.count == 2 else { return due }
        let (rows, rest) = due.quotientAndRemainder(dividingBy: workers)
        func inRow(_ row: Int, of count: Int) -> Int { (row + index) % 2 == 0 ? (count + 1) / 2 : count / 2 }
        return (rows + 1) / 2 * inRow(0, of: workers) + rows / 2 * inRow(1, of: workers) + inRow(rows, of: rest)
    }

    private func send(_ plan: RequestPlan, due: ContinuousClock.Instant, since start: ContinuousClock.Instant) async -> BenchSample {
        let request =
            body.map { manager.upload($0, to: plan.url, method: plan.method, headers: plan.headers) }
            ?? manager.request(plan.url, method: plan.method, headers: plan.headers)
        let response = await request.serializingData().response
        var sample = BenchSample(due: due - start, latency: ContinuousClock.now - due, status: response.response?.statusCode)
        sample.repetitions = response.metrics.transactionMetrics.reduce(0) { $0 + max($1.timesSent - 1, 0) }
        switch response.result {
        case .success(let data): sample.bytes = Int64(data.count)
        // A response without a body has no data, which is no failure.
        case .failure(CurlewError.responseSerializationFailed) where sample.status != nil: break
        case .failure(let error): sample.failure = Outcome(error)
        }
        return sample
    }
}

/// What a step of `bench` has measured, or one of two URLs.
struct BenchFigures: Sendable {
    /// Which of several it is; `nil` for the only one.
    let name: String?
    /// Without secrets.
    let url: String
    let rate: Double?
    let samples: [BenchSample]
    /// How many requests were due and not sent, each of which is a failure without an end.
    let unsent: Int
    let elapsed: Duration
    /// Of the responses, in milliseconds, in ascending order.
    let latencies: [Double]

    init(name: String?, url: String, rate: Double?, samples: [BenchSample], unsent: Int, elapsed: Duration) {
        (self.name, self.url, self.rate, self.samples, self.unsent, self.elapsed) = (name, url, rate, samples, unsent, elapsed)
        latencies = samples.filter { $0.failure == nil }.map { $0.latency / .milliseconds(1) }.sorted()
    }

    var failures: [Outcome] { samples.compactMap(\.failure) }

    /// Those without a response, with a status of 400 or more, and those that were not sent.
    var failureCount: Int { samples.count { $0.failure != nil || $0.status ?? 0 >= 400 } + unsent }

    /// Requests a second, also those that failed.
    var perSecond: Double { Double(samples.count) / max(elapsed / .seconds(1), 1e-9) }

    var measurements: BenchAssertion.Measurements {
        BenchAssertion.Measurements(
            latencies: latencies + Array(repeating: .infinity, count: unsent), failures: failureCount, count: samples.count + unsent,
            perSecond: Double(samples.count + unsent - failureCount) / max(elapsed / .seconds(1), 1e-9))
    }

    /// What to say besides latencies: label and text.
    var facts: [(label: String, text: String)] {
        let seconds = elapsed / .seconds(1)
        var facts = [("requests", "\(samples.count) in \(BenchRun.number(seconds)) s, \(BenchRun.number(perSecond)) a second")]
        let good = samples.filter { $0.failure == nil }
        facts.append(("received", "\(good.reduce(0) { $0 + $1.bytes }) bytes of bodies"))
        let statuses = Dictionary(grouping: good, by: { $0.status ?? 0 }).mapValues(\.count).sorted { $0.key < $1.key }
        if !statuses.isEmpty { facts.append(("statuses", statuses.map { "\($0.key): \($0.value)" }.joined(separator: ", "))) }
        return facts + troubles
    }

    /// What went wrong.
    var troubles: [(label: String, text: String)] {
        let messages = failures.map { $0.message ?? "failed" }
        let errors = Dictionary(grouping: messages, by: \.self).mapValues(\.count).sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var facts = errors.prefix(5).map { ("failed", "\($0.value): \($0.key)") }
        let repetitions = samples.reduce(0) { $0 + $1.repetitions }
        if repetitions > 0 { facts.append(("sent again", "\(repetitions): a reused connection was closed before a response")) }
        if unsent > 0 { facts.append(("not sent", "\(unsent): due, but --concurrency was reached")) }
        return facts
    }

    /// The latencies that the report names.
    static let percentiles = [50.0, 75, 90, 95, 99, 99.9, 100]

    static func title(of percent: Double) -> String { percent == 100 ? "slowest" : "\(BenchRun.plain(percent)) %" }
}
