// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ShareVault} from "./ShareVault.sol";

/// An ERC-7540 vault: deposits are immediate, and redemptions are requested, made claimable by the manager without an
/// event, and claimed in parts. For development chains.
contract RedeemVault is ShareVault {
    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event Withdraw(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );
    event RedeemRequest(
        address indexed controller, address indexed owner, uint256 indexed requestId, address sender, uint256 shares
    );

    mapping(address => uint256) public pending;
    mapping(address => uint256) public claimable;

    constructor(string memory name_, string memory symbol_, address asset_) ShareVault(name_, symbol_, asset_, 0) {}

    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        shares = _join(msg.sender, receiver, assets);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    function requestRedeem(uint256 shares, address controller, address owner) external returns (uint256) {
        if (owner != msg.sender) _spendAllowance(owner, msg.sender, shares);
        _move(owner, address(this), shares);
        pending[controller] += shares;
        emit RedeemRequest(controller, owner, 0, msg.sender, shares);
        return 0;
    }

    function fulfill(address controller, uint256 shares) external onlyManager {
        pending[controller] -= shares;
        claimable[controller] += shares;
    }

    function redeem(uint256 shares, address receiver) external returns (uint256 assets) {
        claimable[msg.sender] -= shares;
        assets = _leave(address(this), receiver, shares);
        emit Withdraw(msg.sender, receiver, msg.sender, assets, shares);
    }
}
