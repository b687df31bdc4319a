// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTestSupport
import CurlewURLSession
import CurlewWebSocket

/// Answers a challenge.
typealias SocketChallengeAnswer = (URLSession.AuthChallengeDisposition, URLCredential?)

/// What the delegates of the tests do.
struct ConnectionAnswers: Sendable {
    var redirect: @Sendable (HTTPURLResponse, URLRequest) -> URLRequest? = { $1 }
    var challenge: @Sendable (URLAuthenticationChallenge) -> SocketChallengeAnswer = { _ in (.performDefaultHandling, nil) }

    static let acceptingServer = ConnectionAnswers(challenge: { challenge in
        guard let trust = challenge.serverTrust else { return (.performDefaultHandling, nil) }
        return (.useCredential, URLCredential(trust: trust))
    })
    static let rejectingServer = ConnectionAnswers(challenge: { _ in (.cancelAuthenticationChallenge, nil) })
}

/// Records what happens to WebSocket and stream tasks. Decides nothing.
final class ConnectionDelegate: NSObject, URLSessionWebSocketDelegate, URLSessionStreamDelegate, @unchecked Sendable {  // immutable
    let events = Log<String>()
    let errors = Log<URLError?>()
    let streams = Log<CapturedPair>()

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
        events.append("open \(`protocol` ?? "-")")
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        events.append("close \(closeCode.rawValue) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")")
    }

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { events.append("read closed") }

    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { events.append("write closed") }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        events.append("streams")
        streams.append(CapturedPair(input: inputStream, output: outputStream))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        errors.append(error as? URLError)
        events.append("complete")
    }
}

/// Streams, used by one thread at a time.
struct CapturedPair: @unchecked Sendable {
    let input: InputStream
    let output: OutputStream
}

/// The same decisions in both forms, in types that declare the conformance.
final class SocketHandlerDecisions: NSObject, URLSessionTaskDelegate, @unchecked Sendable {  // immutable
    let answers: ConnectionAnswers
    let events = Log<String>()

    init(_ answers: ConnectionAnswers) { self.answers = answers }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        events.append("redirect \(response.statusCode)")
        completionHandler(answers.redirect(response, request))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        events.append("challenge \(challenge.protectionSpace.authenticationMethod) \(challenge.previousFailureCount)")
        let (disposition, credential) = answers.challenge(challenge)
        completionHandler(disposition, credential)
    }
}

final class SocketAsyncDecisions: NSObject, URLSessionTaskDelegate, @unchecked Sendable {  // immutable
    let answers: ConnectionAnswers
    let events = Log<String>()

    init(_ answers: ConnectionAnswers) { self.answers = answers }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest? {
        events.append("redirect \(response.statusCode)")
        return answers.redirect(response, request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        events.append("challenge \(challenge.protectionSpace.authenticationMethod) \(challenge.previousFailureCount)")
        return answers.challenge(challenge)
    }
}

/// Never answers.
final class SocketSilentDecisions: NSObject, URLSessionTaskDelegate {
    let asked = Log<String>()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { asked.append("redirect") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { asked.append("challenge") }
}

/// Answers challenges that concern connections only.
final class SocketSessionChallenges: NSObject, URLSessionDelegate, @unchecked Sendable {  // immutable
    let answers: ConnectionAnswers

    init(_ answers: ConnectionAnswers) { self.answers = answers }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { answers.challenge(challenge) }
}

func makeSocketServer(
    answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
    fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }, _ script: @escaping WebSocketServer.Script
) throws -> WebSocketServer {
    try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }, answer: answer, fields: fields, script: script)
}

func makeEchoSocketServer(
    answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
    fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }
) throws -> WebSocketServer {
    try makeSocketServer(answer: answer, fields: fields) { try $0.echo() }
}

/// A head without a body.
func socketHead(_ status: String, _ fields: String...) -> String {
    "HTTP/1.1 \(status)\r\n" + (fields + ["Content-Length: 0"]).map { $0 + "\r\n" }.joined() + "\r\n"
}

/// The code of the error that an operation throws; `nil` if it throws none, or another one.
func failureCode<Value>(of operation: () async throws -> Value) async -> URLError.Code? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return (error as? URLError)?.code
    }
}

extension URLSessionWebSocketTask.Message {
    var text: String? { if case .string(let text) = self { text } else { nil } }
    var bytes: Data? { if case .data(let bytes) = self { bytes } else { nil } }
}
