import { readFileSync } from 'node:fs';

/** Types and functions of the running kernel, as BTF (Documentation/bpf/btf.rst). */
const KERNEL_TYPES = '/sys/kernel/btf/vmlinux';

/** Whether the kernel has a function that programs can call (kfunc). False for a kernel without BTF (CONFIG_DEBUG_INFO_BTF). */
export const hasKernelFunction = (name: string): boolean => {
  try {
    return readFileSync(KERNEL_TYPES).includes(`\0${name}\0`);
  } catch {
    return false;
  }
};

/** By which a program sees what is not in its own view of a packet; Linux 6.2. */
export const KERNEL_CONTEXT = 'bpf_cast_to_kern_ctx';
