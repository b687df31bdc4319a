// SPDX-License-Identifier: Apache-2.0
#if Observability
@_exported import CurlewCore
#endif
