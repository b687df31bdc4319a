// SPDX-License-Identifier: Apache-2.0
#if Lifecycle
import CurlewLifecycle
import Testing
#endif
