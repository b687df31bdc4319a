// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewURLLoading

/// Two closures that make the same decision: one returns it, the other passes it to a completion.
private protocol ClosurePair: Sendable {
    associatedtype Returning: Sendable
    associatedtype Completing: Sendable

    var returning: Returning? { get set }
    var completing: Completing? { get set }

    init()

    /// Makes a closure with a completion of one that returns.
    static func adapt(_ returning: Returning) -> Completing
}

extension ClosurePair {
    /// The closure to call.
    fileprivate var closure: Completing? { completing ?? returning.map(Self.adapt) }
}

private struct SessionChallengeClosures: ClosurePair {
    typealias Returning = @Sendable (Session, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)
    typealias Completing =
        @Sendable (Session, URLAuthenticationChallenge, @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
        -> Void

    var returning: Returning?
    var completing: Completing?

    static func adapt(_ returning: @escaping Returning) -> Completing {
        { session, challenge, completion in
            let (disposition, credential) = returning(session, challenge)
            completion(disposition, credential)
        }
    }
}

private struct TaskChallengeClosures: ClosurePair {
    typealias Returning =
        @Sendable (Session, SessionTask, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)
    typealias Completing =
        @Sendable (
            Session, SessionTask, URLAuthenticationChallenge,
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) -> Void

    var returning: Returning?
    var completing: Completing?

    static func adapt(_ returning: @escaping Returning) -> Completing {
        { session, task, challenge, completion in
            let (disposition, credential) = returning(session, task, challenge)
            completion(disposition, credential)
        }
    }
}

private struct RedirectionClosures: ClosurePair {
    typealias Returning = @Sendable (Session, SessionTask, HTTPURLResponse, URLRequest) -> URLRequest?
    typealias Completing = @Sendable (Session, SessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void

    var returning: Returning?
    var completing: Completing?

    static func adapt(_ returning: @escaping Returning) -> Completing {
        { session, task, response, request, completion in completion(returning(session, task, response, request)) }
    }
}

private struct BodyStreamClosures: ClosurePair {
    typealias Returning = @Sendable (Session, SessionTask) -> InputStream?
    typealias Completing = @Sendable (Session, SessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void

    var returning: Returning?
    var completing: Completing?

    static func adapt(_ returning: @escaping Returning) -> Completing {
        { session, task, completion in completion(returning(session, task)) }
    }
}

private struct ResponseClosures: ClosurePair {
    typealias Returning = @Sendable (Session, SessionTask, HTTPURLResponse) -> URLSession.ResponseDisposition
    typealias Completing =
        @Sendable (Session, SessionTask, HTTPURLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void

    var returning: Returning?
    var completing: Completing?

    static func adapt(_ returning: @escaping Returning) -> Completing {
        { session, task, response, completion in completion(returning(session, task, response)) }
    }
}

private struct CachingClosures: ClosurePair {
    typealias Returning = @Sendable (Session, SessionTask, CachedURLResponse) -> CachedURLResponse?
    typealias Completing = @Sendable (Session, SessionTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void

    var returning: Returning?
    var completing: Completing?

    static func adapt(_ returning: @escaping Returning) -> Completing {
        { session, task, response, completion in completion(returning(session, task, response)) }
    }
}

/// The decisions for which Alamofire 4 has two closures each. If both are set, the one with a completion is called.
///
/// They replace the closure of ``/CurlewCore/SessionDelegate`` for the same decision, and are called like it. Reading returns what was set
/// by the same name.
extension SessionDelegate {
    private func pair<Pair: ClosurePair>(_ type: Pair.Type) -> Pair {
        withClosures { $0.values[type] } ?? Pair()
    }

    /// Changes a pair, and sets the closure to call.
    private func set<Pair: ClosurePair>(
        _ closure: WritableKeyPath<SessionClosures, Pair.Completing?>, _ change: (inout Pair) -> Void
    ) {
        withClosures { closures in
            var pair = closures.values[Pair.self] ?? Pair()
            change(&pair)
            closures.values[Pair.self] = pair
            closures[keyPath: closure] = pair.closure
        }
    }

    // MARK: Challenges

    /// Answers challenges that concern the connection: the trust of its server, Negotiate and NTLM. See
    /// ``/CurlewCore/SessionDelegate/sessionDidReceiveChallenge``.
    @preconcurrency public var sessionDidReceiveChallenge:
        (@Sendable (Session, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    {
        get { pair(SessionChallengeClosures.self).returning }
        set { set(\.sessionDidReceiveChallenge) { (pair: inout SessionChallengeClosures) in pair.returning = newValue } }
    }

    /// The same, with a completion, which may be called later and on any thread; called instead of ``sessionDidReceiveChallenge``.
    @preconcurrency public var sessionDidReceiveChallengeWithCompletion:
        (
            @Sendable (
                Session, URLAuthenticationChallenge, @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    {
        get { pair(SessionChallengeClosures.self).completing }
        set { set(\.sessionDidReceiveChallenge) { (pair: inout SessionChallengeClosures) in pair.completing = newValue } }
    }

    /// Answers the challenge of a server that asks for credentials. See ``/CurlewCore/SessionDelegate/taskDidReceiveChallenge``.
    @preconcurrency public var taskDidReceiveChallenge:
        (@Sendable (Session, SessionTask, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    {
        get { pair(TaskChallengeClosures.self).returning }
        set { set(\.taskDidReceiveChallenge) { (pair: inout TaskChallengeClosures) in pair.returning = newValue } }
    }

    /// The same, with a completion, which may be called later and on any thread; called instead of ``taskDidReceiveChallenge``.
    @preconcurrency public var taskDidReceiveChallengeWithCompletion:
        (
            @Sendable (
                Session, SessionTask, URLAuthenticationChallenge,
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    {
        get { pair(TaskChallengeClosures.self).completing }
        set { set(\.taskDidReceiveChallenge) { (pair: inout TaskChallengeClosures) in pair.completing = newValue } }
    }

    // MARK: Bodies and redirects

    /// Decides about each redirect: returns the request to follow it with, or `nil` to have the redirect itself as the response. See
    /// ``/CurlewCore/SessionDelegate/taskWillPerformHTTPRedirection``.
    @preconcurrency public var taskWillPerformHTTPRedirection:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
    {
        get { pair(RedirectionClosures.self).returning }
        set { set(\.taskWillPerformHTTPRedirection) { (pair: inout RedirectionClosures) in pair.returning = newValue } }
    }

    /// The same, with a completion, which may be called later and on any thread; called instead of ``taskWillPerformHTTPRedirection``.
    @preconcurrency public var taskWillPerformHTTPRedirectionWithCompletion:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void)?
    {
        get { pair(RedirectionClosures.self).completing }
        set { set(\.taskWillPerformHTTPRedirection) { (pair: inout RedirectionClosures) in pair.completing = newValue } }
    }

    /// Returns a new stream where the stream that is a request's body has to be sent again; `nil` fails the request. See
    /// ``/CurlewCore/SessionDelegate/taskNeedNewBodyStream``.
    @preconcurrency public var taskNeedNewBodyStream: (@Sendable (Session, SessionTask) -> InputStream?)? {
        get { pair(BodyStreamClosures.self).returning }
        set { set(\.taskNeedNewBodyStream) { (pair: inout BodyStreamClosures) in pair.returning = newValue } }
    }

    /// The same, with a completion, which may be called later and on any thread; called instead of ``taskNeedNewBodyStream``.
    @preconcurrency public var taskNeedNewBodyStreamWithCompletion:
        (@Sendable (Session, SessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void)?
    {
        get { pair(BodyStreamClosures.self).completing }
        set { set(\.taskNeedNewBodyStream) { (pair: inout BodyStreamClosures) in pair.completing = newValue } }
    }

    // MARK: Responses

    /// Decides at the head of each response to a data or upload request whether its body is received. See
    /// ``/CurlewCore/SessionDelegate/dataTaskDidReceiveResponse``.
    @preconcurrency public var dataTaskDidReceiveResponse:
        (@Sendable (Session, SessionTask, HTTPURLResponse) -> URLSession.ResponseDisposition)?
    {
        get { pair(ResponseClosures.self).returning }
        set { set(\.dataTaskDidReceiveResponse) { (pair: inout ResponseClosures) in pair.returning = newValue } }
    }

    /// The same, with a completion, which may be called later and on any thread; called instead of ``dataTaskDidReceiveResponse``.
    @preconcurrency public var dataTaskDidReceiveResponseWithCompletion:
        (@Sendable (Session, SessionTask, HTTPURLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void)?
    {
        get { pair(ResponseClosures.self).completing }
        set { set(\.dataTaskDidReceiveResponse) { (pair: inout ResponseClosures) in pair.completing = newValue } }
    }

    /// Decides what of a response is stored in the cache: the proposed one, another one, or `nil` for none. See
    /// ``/CurlewCore/SessionDelegate/dataTaskWillCacheResponse``.
    @preconcurrency public var dataTaskWillCacheResponse: (@Sendable (Session, SessionTask, CachedURLResponse) -> CachedURLResponse?)? {
        get { pair(CachingClosures.self).returning }
        set { set(\.dataTaskWillCacheResponse) { (pair: inout CachingClosures) in pair.returning = newValue } }
    }

    /// The same, with a completion, which may be called later and on any thread; called instead of ``dataTaskWillCacheResponse``.
    @preconcurrency public var dataTaskWillCacheResponseWithCompletion:
        (@Sendable (Session, SessionTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void)?
    {
        get { pair(CachingClosures.self).completing }
        set { set(\.dataTaskWillCacheResponse) { (pair: inout CachingClosures) in pair.completing = newValue } }
    }
}
