// SPDX-License-Identifier: Apache-2.0

/// Alamofire 5's name of ``SessionManager/default``.
@available(*, unavailable, renamed: "SessionManager.default")
public var AF: SessionManager { .default }
