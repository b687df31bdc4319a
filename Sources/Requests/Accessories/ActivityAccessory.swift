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

    private let activities = Lock<[ObjectIdentifier: Activity]>([:])

    /// Creates an accessory.
    public init(presenter: any ActivityPresenter = TerminalPresenter.shared, text: String = "") {
        self.presenter = presenter
        self.text = text
    }

    /// Shows an activity.
    public func requestWillStart(_ request: any RunnableRequest) {
        let activity = Activity(text: text)
        if let old = activities.withLock({ $0.updateValue(activity, forKey: ObjectIdentifier(request)) }) { presenter.hide(old) }
        presenter.show(activity)
    }

    /// Hides the activity.
    public func requestWillStop(_ request: any RunnableRequest) {
        if let activity = activities.withLock({ $0.removeValue(forKey: ObjectIdentifier(request)) }) { presenter.hide(activity) }
    }

    /// Does nothing: the activity is already hidden.
    public func requestDidStop(_ request: any RunnableRequest) {}

    /// Returns a block that shows a request's progress, to be set as its ``BaseRequest/resumableDownloadProgressBlock`` or
    /// ``BaseRequest/uploadProgressBlock``. It does not retain the request.
    public func progressBlock(for request: any RunnableRequest) -> BaseRequest.ProgressBlock {
        let id = ObjectIdentifier(request)
        return { [weak self] progress in
            guard let self, let activity = activities.withLock({ $0[id] }), progress.totalUnitCount > 0 else { return }
            presenter.update(activity, fraction: progress.fractionCompleted)
        }
    }
}
