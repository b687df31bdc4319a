// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

// On Linux the XML parser is a separate module that links libxml2, on which no lower layer depends.
#if canImport(FoundationXML)
@_exported import FoundationXML
#endif
