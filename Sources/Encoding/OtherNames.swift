// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension URLRequest {
    /// Alamofire 5's view of the header fields as `HTTPHeaders`.
    @available(*, unavailable, message: "use setValue(_:forHTTPHeaderField:), or a HeaderAdapter, which has HTTPHeaders")
    public var headers: HTTPHeaders {
        get { [:] }
        set {}
    }
}
