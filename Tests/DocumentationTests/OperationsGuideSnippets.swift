// SPDX-License-Identifier: Apache-2.0
// snippet: imports
import CurlewOperations
// end

// The code of ComingFromAFNetworking2.md, in the same form as Snippets.swift, with the guide's import and no other; `GuideTests` runs it.

enum OperationsGuide {
    static func start(_ url: URL, on queue: OperationQueue, print: @escaping @Sendable (String) -> Void) {
        // snippet: operation
        let operation = HTTPRequestOperation(request: URLRequest(url: url))
        operation.responseSerializer = JSONResponseSerializer()
        operation.setCompletionBlock { operation, object in
            print("\(operation.response?.statusCode ?? 0): \(object ?? "nothing")")
        } failure: { operation, error in
            print("failed: \(error)")
        }
        queue.addOperation(operation)
        // end
    }

    static func batch(_ first: HTTPRequestOperation, _ second: HTTPRequestOperation, on queue: OperationQueue) async throws -> [Data] {
        // snippet: batch
        for operation in URLConnectionOperation.batchOfRequestOperations([first, second]) {
            queue.addOperation(operation)
        }
        let bodies = try await [first.value, second.value]
        // end
        return bodies
    }
}
