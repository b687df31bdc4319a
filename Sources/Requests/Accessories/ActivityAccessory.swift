// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Something that is going on and shown to the user.
public struct Activity: Sendable, Hashable, Identifiable {
    /// What tells it from others.
    public let id: UUID
    /// What is told to the user; may be empty.
    public let text: String

    /// Makes an activity that is no other.
    public init(text: String = "") {
        id = UUID()
        self.text = text
    }
}

/// Shows the user that something is going on: a spinner, a bar. Several activities may go on at once. Called on any thread.
public protocol ActivityPresenter: AnyObject, Sendable {
    /// An activity begins.
    func show(_ activity: Activity)
    /// So much of an activity is done: 0 to 1.
    func update(_ activity: Activity, fraction: Double)
    /// An activity is over. One that was not shown is not to be minded.
    func hide(_ activity: Activity)
}

/// Has it shown that requests, batches and chains are on their way: from their start until their callbacks run, or they are stopped.
///
/// One accessory may be given to any number of them: each is an activity of its own. Answers from a cache are not shown.
public final class ActivityAccessory: RequestAccessory {
    /// Who shows it.
    public let presenter: any ActivityPresenter
    /// What is told to the user.
    public let text: String

    private let activities = Lock<[ObjectIdentifier: Activity]>([:])

    /// Makes an accessory.
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

    /// Hides it.
    public func requestWillStop(_ request: any RunnableRequest) {
        if let activity = activities.withLock({ $0.removeValue(forKey: ObjectIdentifier(request)) }) { presenter.hide(activity) }
    }

    /// Does nothing: it is hidden already.
    public func requestDidStop(_ request: any RunnableRequest) {}

    /// What tells how much of a request is done, to be set as its ``BaseRequest/resumableDownloadProgressBlock`` or
    /// ``BaseRequest/uploadProgressBlock``. Does not keep the request alive.
    public func progressBlock(for request: any RunnableRequest) -> BaseRequest.ProgressBlock {
        let id = ObjectIdentifier(request)
        return { [weak self] progress in
            guard let self, let activity = activities.withLock({ $0[id] }), progress.totalUnitCount > 0 else { return }
            presenter.update(activity, fraction: progress.fractionCompleted)
        }
    }
}
