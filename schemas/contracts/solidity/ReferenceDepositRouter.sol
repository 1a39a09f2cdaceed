// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20, TokenCalls} from "./ERC20.sol";

/// The functions of a vault that the router calls.
interface IReferralVault {
    function asset() external view returns (address);
    function deposit(uint256 assets, address receiver, uint32 partnerId) external returns (uint256 shares);
    function requestWithdrawalFor(address holder, uint256 shares, address receiver, uint32 partnerId)
        external
        returns (uint256 requestIndex);
}

/// The supported way to deposit or to request a withdrawal through a partner: only into allowed vaults, only for
/// active partners, and never for fewer shares than the depositor accepts. It keeps no funds between calls. Its events
/// are for audit; only the vault's events attribute.
contract ReferenceDepositRouter {
    using TokenCalls for IERC20;

    event VaultAllowed(address indexed vault, bool allowed);
    event PartnerStatusSet(uint32 indexed partnerId, bool active);
    event RoutedDeposit(
        uint32 indexed partnerId,
        address indexed vault,
        address indexed receiver,
        address sender,
        uint256 assets,
        uint256 shares
    );
    event RoutedWithdrawal(
        uint32 indexed partnerId, address indexed vault, address indexed owner, uint256 requestIndex, uint256 shares
    );

    error NotAuthorized(address caller);
    error VaultNotAllowed(address vault);
    error PartnerNotActive(uint32 partnerId);
    error TooFewShares(uint256 shares, uint256 minShares);

    address public immutable owner;
    mapping(address => bool) public isVaultAllowed;
    mapping(uint32 => bool) public isPartnerActive;

    constructor() {
        owner = msg.sender;
    }

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotAuthorized(msg.sender);
        _;
    }

    modifier open(address vault, uint32 partnerId) {
        if (!isVaultAllowed[vault]) revert VaultNotAllowed(vault);
        if (!isPartnerActive[partnerId]) revert PartnerNotActive(partnerId);
        _;
    }

    function setVaultAllowed(address vault, bool allowed) external onlyOwner {
        isVaultAllowed[vault] = allowed;
        emit VaultAllowed(vault, allowed);
    }

    /// Partner 0 means "no partner" in the vault's events, so it can never be active here.
    function setPartnerStatus(uint32 partnerId, bool active) external onlyOwner {
        if (partnerId == 0) revert PartnerNotActive(0);
        isPartnerActive[partnerId] = active;
        emit PartnerStatusSet(partnerId, active);
    }

    /// The caller has approved the router for the vault's asset.
    function deposit(address vault, uint256 assets, uint256 minShares, address receiver, uint32 partnerId)
        external
        open(vault, partnerId)
        returns (uint256 shares)
    {
        IERC20 asset = IERC20(IReferralVault(vault).asset());
        asset.pull(msg.sender, assets);
        asset.allow(vault, assets);
        shares = IReferralVault(vault).deposit(assets, receiver, partnerId);
        if (shares < minShares) revert TooFewShares(shares, minShares);
        emit RoutedDeposit(partnerId, vault, receiver, msg.sender, assets, shares);
    }

    /// The caller owns the shares, has approved the router for them, and stays the owner of the request.
    function requestWithdrawal(address vault, uint256 shares, address receiver, uint32 partnerId)
        external
        open(vault, partnerId)
        returns (uint256 requestIndex)
    {
        requestIndex = IReferralVault(vault).requestWithdrawalFor(msg.sender, shares, receiver, partnerId);
        emit RoutedWithdrawal(partnerId, vault, msg.sender, requestIndex, shares);
    }
}
