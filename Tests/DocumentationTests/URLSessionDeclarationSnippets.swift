// SPDX-License-Identifier: Apache-2.0
// The code of «Coming from URLSession» for a file that keeps the import of FoundationNetworking.

// snippet: import-declaration
import Foundation
import FoundationNetworking

import class CurlewURLSession.URLSession

struct Uploader {
    let session: URLSession  // Curlew's
    var earlier: URLSessionTask?  // Foundation's, as that name is not imported
}
// end

extension Uploader {
    var isCurlews: Bool { type(of: session) == CurlewURLSession.URLSession.self && earlier == FoundationNetworking.URLSessionTask?.none }
}
