// SPDX-License-Identifier: Apache-2.0

extension TransferState {
    /// The limits on a response's head; see the options of the same names.
    struct HeadLimits {
        /// In bytes.
        var size = 0
        /// In bytes.
        var fieldSize = 0
        var fieldCount = 0
        var interimResponses = 0

        /// Whether a head may have this size in bytes so far, with a field of this size, and this number of fields.
        func allow(size: Int, fieldSize: Int, fieldCount: Int) -> Bool {
            size <= self.size && fieldSize <= self.fieldSize && fieldCount <= self.fieldCount
        }

        /// The message for a head that is not allowed.
        func excess(size: Int, fieldSize: Int) -> String {
            if size > self.size {
                "The response's head exceeds the limit of \(self.size) bytes"
            } else if fieldSize > self.fieldSize {
                "A field of the response's head exceeds the limit of \(self.fieldSize) bytes"
            } else {
                "The response's head exceeds the limit of \(fieldCount) fields"
            }
        }
    }
}
