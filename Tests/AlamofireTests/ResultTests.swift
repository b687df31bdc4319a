// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Testing

@Suite struct ResultTests {
    private let success = Result<String>.success("value")
    private let failure = Result<String>.failure(TestError("first"))

    @Test("it has one type parameter, and is Swift's") func oneParameter() {
        let swifts: Swift.Result<String, Error> = success
        #expect(swifts.value == "value")
        #expect(Result<Int>.Value.self == Int.self)
    }

    @Test("isSuccess, isFailure, value and error") func caseAndContent() {
        #expect(success.isSuccess && !success.isFailure)
        #expect(success.value == "value" && success.error == nil)
        #expect(failure.isFailure && !failure.isSuccess)
        #expect(failure.value == nil && failure.error as? TestError == TestError("first"))
    }

    @Test("descriptions") func descriptions() {
        #expect(success.description == "SUCCESS")
        #expect(failure.description == "FAILURE")
        #expect(success.debugDescription == "SUCCESS: value")
        #expect(failure.debugDescription.hasPrefix("FAILURE: "))
        #expect(failure.debugDescription.contains("first"))
    }

    @Test("it is initialized with a closure that returns or throws") func initWithClosure() {
        #expect(Result { "value" }.value == "value")
        #expect(Result(value: { 7 }).value == 7)
        let thrown: Result<String> = Result { throw TestError("thrown") }
        #expect(thrown.error as? TestError == TestError("thrown"))
    }

    @Test("unwrap returns the value or throws the error") func unwrap() throws {
        #expect(try success.unwrap() == "value")
        #expect(throws: TestError("first")) { try failure.unwrap() }
    }

    @Test("map transforms a value, and keeps an error") func map() {
        let mapped: Result<Int> = success.map { $0.count }
        #expect(mapped.value == 5)
        #expect(failure.map { $0.count }.error as? TestError == TestError("first"))
    }

    @Test("flatMap transforms a value with a closure that can throw") func flatMap() {
        #expect(success.flatMap { $0.count }.value == 5)
        let thrown = success.flatMap { _ -> Int in throw TestError("thrown") }
        #expect(thrown.error as? TestError == TestError("thrown"))
        #expect(failure.flatMap { $0.count }.error as? TestError == TestError("first"))
        #expect(success.flatMap { Result<Int>.success($0.count) }.value == 5)
    }

    @Test("mapError transforms an error, and keeps a value") func mapError() {
        let mapped = failure.mapError { _ in TestError("second") }
        #expect(mapped.error as? TestError == TestError("second"))
        let same: Result<String> = success.mapError { _ in TestError("second") }
        #expect(same.value == "value")
    }

    @Test("flatMapError transforms an error with a closure that can throw, whose error replaces it") func flatMapError() {
        #expect(failure.flatMapError { _ in TestError("second") }.error as? TestError == TestError("second"))
        func refuse(_ error: Error) throws -> TestError { throw TestError("thrown") }
        #expect(failure.flatMapError(refuse).error as? TestError == TestError("thrown"))
        #expect(success.flatMapError(refuse).value == "value")
    }

    @Test("withValue, withError, ifSuccess and ifFailure call their closure, and return the result") func sideEffects() {
        var calls: [String] = []
        success.withValue { calls.append($0) }.withError { _ in calls.append("no") }.ifSuccess { calls.append("success") }
            .ifFailure { calls.append("no") }
        failure.withValue { _ in calls.append("no") }.withError { calls.append("\($0)") }.ifSuccess { calls.append("no") }
            .ifFailure { calls.append("failure") }
        #expect(calls == ["value", "success", "\(TestError("first"))", "failure"])
        #expect(throws: TestError("thrown")) { try success.withValue { _ in throw TestError("thrown") } }
    }
}
