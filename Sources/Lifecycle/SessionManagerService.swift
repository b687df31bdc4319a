// SPDX-License-Identifier: Apache-2.0
#if Lifecycle
public import ServiceLifecycle

/// A `Service` of swift-service-lifecycle that shuts a ``SessionManager`` down when its group does, on SIGTERM for example.
///
/// ```swift
/// let manager = SessionManager()
/// let group = ServiceGroup(
///     services: [SessionManagerService(manager, gracePeriod: .seconds(20)), server],
///     gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// A group shuts its services down one after the other, beginning with the last. List this service before those that send requests if they
/// finish their work by themselves when they are shut down, as a server does: their requests are unaffected until then. List it after them
/// if the grace period is to limit their requests: they run on meanwhile, and new requests fail with ``CurlewError/sessionShutDown``.
///
/// Needs the trait `Lifecycle`. Thread-safe.
public struct SessionManagerService: Service {
    private let manager: SessionManager
    private let gracePeriod: Duration

    /// Creates a service for a manager, which it retains.
    ///
    /// - Parameters:
    ///   - manager: the manager to shut down. Its requests need not wait for the service to run.
    ///   - gracePeriod: how long requests in flight may take, as in ``SessionManager/shutdown(gracePeriod:)``; 30 seconds by default. The
    ///     group's `maximumGracefulShutdownDuration`, if it is set, has to be longer: it cancels the service, which ends the grace period.
    public init(_ manager: SessionManager, gracePeriod: Duration = .seconds(30)) {
        self.manager = manager
        self.gracePeriod = gracePeriod
    }

    /// Waits for the group's graceful shutdown, and returns when the manager is shut down.
    ///
    /// If its task is cancelled, requests in flight are cancelled without a grace period; it returns when they have ended, without an error.
    public func run() async {
        // Throws only if the task is cancelled, and then the shutdown below has no grace period.
        try? await gracefulShutdown()
        await manager.shutdown(gracePeriod: gracePeriod)
    }
}
#endif
