import { parseAbi } from "viem";

// The events of schemas/contracts that the benchmark's vault emits.
export const abi = parseAbi([
  "event DepositAccepted(uint256 indexed depositId, address indexed owner, uint32 indexed partnerId, address sender, uint256 assets, uint256 shares)",
  "event WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt)",
  "event WithdrawalFunded(uint256 indexed requestIndex, address indexed owner, uint256 indexed settlementId, uint256 shares, uint256 assets)",
  "event WithdrawalClaimed(uint256 indexed requestIndex, address indexed owner, address indexed receiver, uint256 shares, uint256 assets)",
  "event WithdrawalCancelled(uint256 indexed requestIndex, address indexed owner, uint256 shares)",
  "event NavUpdated(uint256 indexed navId, address indexed updater, uint256 navPerShare, uint256 totalAssets, uint256 totalSupply)",
  "event DepositsSwept(uint256 indexed sweepId, address indexed custodian, uint256 fromDepositId, uint256 toDepositId, uint256 assets)",
  "event WithdrawalsSettled(uint256 indexed settlementId, address indexed funder, uint256 requestCount, uint256 shares, uint256 assets, uint256 navPerShare)",
]);
