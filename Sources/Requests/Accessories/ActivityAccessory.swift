// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// An activity in progress that is shown to the user.
public struct Activity: Sendable, Hashable, Identifiable {
    /// Identifies the activity.
    public let id: UUID
    /// The text shown to the user; may be empty.
    public let text: String

    /// Creates a new activity, distinct from all others.
    public init(text: String = "") {
        id = UUID()
        self.text = text
    }
}

/// Shows the user that activities are in progress, with a spinner or a bar. Several activities may overlap. Called on any thread.
public protocol ActivityPresenter: AnyObject, Sendable {
    /// Called when an activity begins.
    func show(_ activity: Activity)
    /// Called when an activity progresses: `fraction` is from 0 to 1.
    func update(_ activity: Activity, fraction: Double)
    /// Called when an activity ends. An activity that is not shown is ignored.
    func hide(_ activity: Activity)
}

/// Shows requests, batches and chains in flight: from their start until their callbacks run or they are stopped.
///
/// One accessory may be added to any number of them: each is a separate activity. Responses from a cache are not shown.
public final class ActivityAccessory: RequestAccessory {
    /// The presenter that shows the activities.
    public let presenter: any ActivityPresenter
    /// The text shown to the user.
    public let text: String

    /// The activities of each request's runs, of which a newer one may start while accessories are being notified of the end of the last.
    private let activities = Lock<[ObjectIdentifier: [Activity]]>([:])

    /// Creates an accessory.
    public init(presenter: any ActivityPresenter = TerminalPresenter.shared, text: String = "") {
        self.presenter = presenter
        self.text = text
    }

    /// Shows an activity.
    public func requestWillStart(_ request: any RunnableRequest) {
        let activity = Activity(text: text)
        presenter.show(activity)
        // Only now, so that the end of another run hides what is shown.
        activities.withLock { $0[ObjectIdentifier(request), default: []].append(activity) }
    }

    /// Hides the activity.
    public func requestWillStop(_ request: any RunnableRequest) {
        let ended = activities.withLock { activities -> Activity? in
            let id = ObjectIdentifier(request)
            guard var running = activities[id] else { return nil }
            defer { activities[id] = running.isEmpty ? nil : running }
            return running.removeFirst()
        }
        if let ended { presenter.hide(ended) }
    }

    /// Does nothing: the activity is already hidden.
    public func requestDidStop(_ request: any RunnableRequest) {}

    /// Returns a block that shows a request's progress, to be set as its ``BaseRequest/resumableDownloadProgressBlock`` or
    /// ``BaseRequest/uploadProgressBlock``. It does not retain the request.
    public func progressBlock(for request: any RunnableRequest) -> BaseRequest.ProgressBlock {
        let id = ObjectIdentifier(request)
        return { [weak self] progress in
            guard let self, let activity = activities.withLock({ $0[id]?.last }), progress.totalUnitCount > 0 else { return }
            presenter.update(activity, fraction: progress.fractionCompleted)
        }
    }
}
