// The names of the kinds of events, in the API and for people.

export const kinds: Record<string, string> = {
  DepositAccepted: "Deposit",
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
  return kinds[kind] ?? kind
}
