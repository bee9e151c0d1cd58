/* SPDX-License-Identifier: GPL-2.0 */
/* Nothing: there are no modules here */
