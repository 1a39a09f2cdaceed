// What the kinds of events of the reference contracts are called for people. Those of other contracts have their names.
// Each text has a space, so it is never the name of another event: ERC-4626 has a Deposit, too.

const kinds: Record<string, string> = {
  DepositAccepted: "Deposit accepted",
  WithdrawalRequested: "Withdrawal requested",
  WithdrawalFunded: "Withdrawal funded",
  WithdrawalClaimed: "Withdrawal claimed",
  WithdrawalCancelled: "Withdrawal cancelled",
  WithdrawalExpired: "Withdrawal expired",
  NavUpdated: "NAV updated",
  DepositsSwept: "Deposits swept",
  WithdrawalsSettled: "Withdrawals settled",
}

export function kindName(kind: string): string {
  return Object.hasOwn(kinds, kind) ? kinds[kind]! : kind
}
